// Shuffles by seed and epoch, then takes every world_size-th index, from this rank's number on.
#include <brigade/dist/ddp/sampler.h>

#include <brigade/core/error.h>
#include <brigade/core/random.h>

#include <algorithm>
#include <numeric>

namespace brigade::dist {

DistributedSampler::DistributedSampler(int64_t size, int rank, int world_size, const DistributedSamplerOptions& options)
    : size_(size), rank_(rank), world_size_(world_size), options_(options) {
  if (size < 0) throw ValueError("DistributedSampler: size must not be negative, got {}", size);
  if (world_size < 1) throw ValueError("DistributedSampler: world_size must be at least 1, got {}", world_size);
  if (rank < 0 || rank >= world_size) {
    throw ValueError("Invalid rank {}, rank should be in the interval [0, {}]", rank, world_size - 1);
  }
  per_rank_ = options.drop_last ? size / world_size : (size + world_size - 1) / world_size;
}

std::vector<int64_t> DistributedSampler::indices() const {
  std::vector<int64_t> order(static_cast<size_t>(size_));
  std::iota(order.begin(), order.end(), int64_t{0});
  if (options_.shuffle) {
    // Fisher-Yates on the Philox stream of seed + epoch; the high word of a 64-bit product maps a
    // random word to a range.
    const PhiloxState stream{options_.seed + epoch_, 0};
    for (int64_t i = size_ - 1; i > 0; --i) {
      const auto words = stream.block(static_cast<uint64_t>(i));
      const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
      const auto j = static_cast<int64_t>(
          static_cast<uint64_t>((static_cast<__uint128_t>(random) * static_cast<uint64_t>(i + 1)) >> 64));
      std::swap(order[static_cast<size_t>(i)], order[static_cast<size_t>(j)]);
    }
  }
  std::vector<int64_t> mine;
  mine.reserve(static_cast<size_t>(per_rank_));
  for (int64_t i = 0; i < per_rank_ && size_ > 0; ++i) {
    mine.push_back(order[static_cast<size_t>((i * world_size_ + rank_) % size_)]);
  }
  return mine;
}

}  // namespace brigade::dist
