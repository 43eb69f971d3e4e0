// Pass: the batches of one pass over the data, made in order by threads that work ahead, or by the
// thread that asks.
#pragma once

#include <brigade/data/detail/batch_in_progress.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <thread>
#include <vector>

namespace brigade::data::detail {

// Makes a batch of any type; may throw anything. Several threads call it at once.
using MakeBatch = std::function<std::shared_ptr<void>(std::span<const int64_t> indices, BatchInProgress& at)>;

struct PassPlan {
  std::vector<int64_t> order;  // all indices of the epoch
  int64_t batch_size = 1;
  bool drop_last = false;
  RandomKey random;
  int64_t first = 0;  // the batch to begin with
  int workers = 0;
  int64_t ahead = 0;                   // at most so many batches are made or in the making that nobody has taken
  std::chrono::milliseconds limit{0};  // of each wait; 0: none

  int64_t batches() const noexcept;
  std::span<const int64_t> batch(int64_t number) const noexcept;
};

// How far the consumer is; outlives the pass.
struct PassProgress {
  uint64_t epoch = 0;
  int64_t taken = 0;       // batches of the epoch, those before the first of this pass among them
  bool has_ended = false;  // after the last batch
};

class Pass {
 public:
  // Throws std::system_error when a thread cannot be started; none is left running then.
  Pass(PassPlan plan, MakeBatch make);
  // Waits for the workers, which end after the example that each is at. One that is still there
  // after the limit is left running, with all that it uses, and a warning names the example.
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // The next batch; null when there are no more. Throws DataLoaderError for a batch that could not
  // be made, at its turn; TimeoutError when it is not there after the limit. Either ends the pass.
  std::shared_ptr<void> next();

  const std::shared_ptr<PassProgress>& progress() const noexcept { return progress_; }

 private:
  struct State;
  void stop() noexcept;

  // Shared with the workers: one that is left running keeps it.
  std::shared_ptr<State> state_;
  std::shared_ptr<PassProgress> progress_;
  bool failed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace brigade::data::detail
