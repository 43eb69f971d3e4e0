// Pass: the batches of one pass over the data, made in order, ahead of time by worker threads or on demand by the
// consumer's thread.
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
  int64_t ahead = 0;                   // limit of batches that are finished or in progress and not taken yet
  std::chrono::milliseconds limit{0};  // limit of each wait; 0: none

  int64_t batches() const noexcept;
  std::span<const int64_t> batch(int64_t number) const noexcept;
};

// The consumer's progress; outlives the pass.
struct PassProgress {
  uint64_t epoch = 0;
  int64_t taken = 0;       // batches of the epoch, including those before the first of this pass
  bool has_ended = false;  // after the last batch
};

class Pass {
 public:
  // Throws std::system_error when a thread cannot be started; none is left running then.
  Pass(PassPlan plan, MakeBatch make);
  // Waits for the workers, each of which ends after its current example. A worker that has not ended at the limit keeps
  // running, with everything it uses, and a warning names the example.
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // The next batch; null when there are no more. Throws DataLoaderError, when its turn comes, for a batch that could
  // not be made; TimeoutError when the batch is not ready at the limit. Either ends the pass.
  std::shared_ptr<void> next();

  const std::shared_ptr<PassProgress>& progress() const noexcept { return progress_; }

 private:
  struct State;
  void stop() noexcept;

  // Shared with the workers: one that keeps running keeps it alive.
  std::shared_ptr<State> state_;
  std::shared_ptr<PassProgress> progress_;
  bool failed_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace brigade::data::detail
