// Fisher-Yates permutations from a Philox stream.
#include <brigade/data/sampler.h>

#include <brigade/core/error.h>
#include <brigade/core/fnv.h>
#include <brigade/core/random.h>

#include <numeric>
#include <utility>

namespace brigade::data {
namespace {

std::vector<int64_t> count_up(int64_t size) {
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

int64_t checked_size(const char* what, int64_t size) {
  if (size < 0) throw ValueError("{}: size must not be negative, got {}", what, size);
  return size;
}

}  // namespace

uint64_t Sampler::fingerprint() const {
  uint64_t hash = kFnvStart;
  for (const int64_t index : indices())
    hash = fnv_step(hash, static_cast<uint64_t>(index));
  return hash;
}

SequentialSampler::SequentialSampler(int64_t size) : size_(checked_size("SequentialSampler", size)) {}

std::vector<int64_t> SequentialSampler::indices() const { return count_up(size_); }

RandomSampler::RandomSampler(int64_t size, uint64_t seed) : size_(checked_size("RandomSampler", size)), seed_(seed) {}

std::vector<int64_t> RandomSampler::indices() const { return permutation(size_, seed_ + epoch_); }

std::vector<int64_t> permutation(int64_t size, uint64_t seed) {
  std::vector<int64_t> order = count_up(checked_size("permutation", size));
  // The high word of a 64-bit product maps a random word to a range.
  const PhiloxState stream{seed, 0};
  for (int64_t i = size - 1; i > 0; --i) {
    const auto words = stream.block(static_cast<uint64_t>(i));
    const uint64_t random = (static_cast<uint64_t>(words[0]) << 32) | words[1];
    const auto j = static_cast<size_t>((static_cast<__uint128_t>(random) * static_cast<uint64_t>(i + 1)) >> 64);
    std::swap(order[static_cast<size_t>(i)], order[j]);
  }
  return order;
}

}  // namespace brigade::data
