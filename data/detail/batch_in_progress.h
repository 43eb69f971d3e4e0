// BatchInProgress: which example a thread is at, for errors; and the random numbers that it may draw.
#pragma once

#include <brigade/core/random.h>
#include <brigade/data/example.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>

namespace brigade::data::detail {

// What decides the random numbers of a pass.
struct RandomKey {
  uint64_t seed = 0;
  uint64_t epoch = 0;
};

// Made and used by the thread that makes the batch; in_words() may be asked by others. While it
// lives, the thread's default_generator() is not that of the training: it comes back as it was.
class BatchInProgress {
 public:
  BatchInProgress(RandomKey key, int64_t batch, std::span<const int64_t> indices, bool on_worker);
  ~BatchInProgress();
  BatchInProgress(const BatchInProgress&) = delete;
  BatchInProgress& operator=(const BatchInProgress&) = delete;

  // Before get(index): seeds the thread's generator by seed, epoch and index.
  void getting(int64_t index) noexcept;
  // Before all of them are taken at once, or put together: seeds by the first index.
  void getting_all() noexcept;
  void collating() noexcept;

  // A tensor of a device was queued on a stream that belongs to this thread: workers make batches in
  // host memory only. Throws ValueError.
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
  std::atomic<int64_t> at_{kAll};  // an index, or what is done with all
  RandomGenerator saved_;
};

}  // namespace brigade::data::detail
