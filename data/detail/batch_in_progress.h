// BatchInProgress: the example that a thread is working on, for errors, and the random numbers that it may draw.
#pragma once

#include <brigade/core/random.h>
#include <brigade/data/dataset.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

namespace brigade::data::detail {

// Determines the random numbers of a pass.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

// Created and used by the thread that makes the batch; other threads may call in_words(). While it lives, the thread's
// default_generator() is not that of the training; it is restored afterwards.
class BatchInProgress {
 public:
  BatchInProgress(RandomKey key, int64_t batch, std::span<const int64_t> indices, bool on_worker);
  ~BatchInProgress();
  BatchInProgress(const BatchInProgress&) = delete;
  BatchInProgress& operator=(const BatchInProgress&) = delete;

  // Call before get(index): seeds the thread's generator by seed, epoch and index.
  void getting(int64_t index) noexcept;
  // Call before all examples are loaded at once, or collated: seeds by the first index.
  void getting_all() noexcept;
  void collating() noexcept;

  // Throws ValueError for a device tensor made by a worker: it was queued on a stream of the worker's thread, so
  // workers make batches in host memory only.
  template <class T>
  void check_made(const T&) const {}
  void check_made(const Tensor& tensor) const;
  void check_made(const Example& example) const;

  int64_t batch() const noexcept { return batch_; }
  std::vector<int64_t> indices() const;
  // "example 17 (batch 3 of epoch 0)"
  std::string in_words() const;

 private:
  enum : int64_t { kAll = -1, kCollate = -2 };

  RandomKey key_;
  int64_t batch_;
  std::span<const int64_t> all_;
  bool on_worker_;
  std::atomic<int64_t> at_{kAll};  // an index, or kAll, or kCollate
  RandomGenerator saved_;
};

}  // namespace brigade::data::detail
