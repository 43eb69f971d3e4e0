// Samplers: the order in which a DataLoader takes the examples. (The one for several ranks: dist/ddp/sampler.h.)
#pragma once

#include <cstdint>
#include <vector>

namespace brigade::data {

class Sampler {
 public:
  virtual ~Sampler() = default;
  // Indices of one epoch in their order; the same at every call until set_epoch().
  virtual std::vector<int64_t> indices() const = 0;
  // The number of indices.
  virtual int64_t size() const noexcept = 0;
  // A DataLoader calls it before each pass over the data.
  virtual void set_epoch(uint64_t epoch) noexcept { static_cast<void>(epoch); }
  // The number of ranks that share the examples.
  virtual int world_size() const noexcept { return 1; }
  // Identifies this order, with the same value on all ranks: a saved position with another fingerprint is rejected. By
  // default, a hash of indices().
  virtual uint64_t fingerprint() const;
};

// 0, 1, ..., size - 1.
class SequentialSampler : public Sampler {
 public:
  // Throws ValueError for a negative size.
  explicit SequentialSampler(int64_t size);
  std::vector<int64_t> indices() const override;
  int64_t size() const noexcept override { return size_; }

 private:
  int64_t size_;
};

// A permutation made from seed + epoch: the order of a DistributedSampler with one rank.
class RandomSampler : public Sampler {
 public:
  // Throws ValueError for a negative size.
  explicit RandomSampler(int64_t size, uint64_t seed = 0);
  std::vector<int64_t> indices() const override;
  int64_t size() const noexcept override { return size_; }
  void set_epoch(uint64_t epoch) noexcept override { epoch_ = epoch; }

 private:
  int64_t size_;
  uint64_t seed_;
  uint64_t epoch_ = 0;
};

// 0..size-1, shuffled by a stream of random numbers that depends on `seed` alone. Throws ValueError for a negative
// size.
std::vector<int64_t> permutation(int64_t size, uint64_t seed);

}  // namespace brigade::data
