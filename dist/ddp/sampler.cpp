// Shuffles by seed and epoch, then takes every world_size-th index, starting at this rank.
#include <brigade/dist/ddp/sampler.h>

#include <brigade/core/error.h>
#include <brigade/core/fnv.h>

#include <utility>

namespace brigade::dist {
namespace {

void check_sampler_rank(const char* what, int rank, int world_size) {
  if (world_size < 1) throw ValueError("{}: world_size must be at least 1, got {}", what, world_size);
  if (rank < 0 || rank >= world_size)
    throw ValueError("Invalid rank {}, rank should be in the interval [0, {}]", rank, world_size - 1);
}

// `count` indices: every world_size-th from `rank` on, wrapping around at the end.
std::vector<int64_t> share_of(const std::vector<int64_t>& order, int64_t count, int rank, int world_size) {
  std::vector<int64_t> mine;
  mine.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count && !order.empty(); ++i)
    mine.push_back(order[static_cast<size_t>(i * world_size + rank) % order.size()]);
  return mine;
}

}  // namespace

DistributedSampler::DistributedSampler(int64_t size, int rank, int world_size, const DistributedSamplerOptions& options)
    : size_(size), rank_(rank), world_size_(world_size), options_(options) {
  if (size < 0) throw ValueError("DistributedSampler: size must not be negative, got {}", size);
  check_sampler_rank("DistributedSampler", rank, world_size);
  per_rank_ = options.drop_last ? size / world_size : (size + world_size - 1) / world_size;
}

std::vector<int64_t> DistributedSampler::indices() const {
  if (options_.shuffle)
    return share_of(data::permutation(size_, options_.seed + epoch_), per_rank_, rank_, world_size_);
  return share_of(data::SequentialSampler(size_).indices(), per_rank_, rank_, world_size_);
}

uint64_t DistributedSampler::fingerprint() const {
  uint64_t hash = fnv_step(fnv("DistributedSampler"), static_cast<uint64_t>(size_));
  hash = fnv_step(hash, (options_.shuffle ? 2U : 0U) + (options_.drop_last ? 1U : 0U));
  return options_.shuffle ? fnv_step(hash, options_.seed + epoch_) : hash;
}

DistributedSamplerWrapper::DistributedSamplerWrapper(std::shared_ptr<data::Sampler> sampler, int rank, int world_size)
    : sampler_(std::move(sampler)), rank_(rank), world_size_(world_size) {
  if (!sampler_) throw ValueError("DistributedSamplerWrapper: there is no sampler");
  check_sampler_rank("DistributedSamplerWrapper", rank, world_size);
}

std::vector<int64_t> DistributedSamplerWrapper::indices() const {
  return share_of(sampler_->indices(), size(), rank_, world_size_);
}

}  // namespace brigade::dist
