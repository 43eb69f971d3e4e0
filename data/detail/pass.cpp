// Workers take batch numbers in order and store each result under its number, where the consumer looks for it; so order
// and values do not depend on the speed of the workers. A failure is stored like a batch.
#include <brigade/data/detail/pass.h>

#include <brigade/core/warning.h>
#include <brigade/data/data_loader.h>

#ifdef _OPENMP
#include <omp.h>
#endif

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>

namespace brigade::data::detail {

int64_t PassPlan::batches() const noexcept {
  const auto count = static_cast<int64_t>(order.size());
  return drop_last ? count / batch_size : (count + batch_size - 1) / batch_size;
}

std::span<const int64_t> PassPlan::batch(int64_t number) const noexcept {
  const auto begin = static_cast<size_t>(number * batch_size);
  return std::span(order).subspan(begin, std::min(static_cast<size_t>(batch_size), order.size() - begin));
}

namespace {

// The current exception, with the example's index in front; the original is nested.
std::exception_ptr named(const BatchInProgress& at, uint64_t epoch) {
  std::string reason = "an exception that is no std::exception";
  try {
    throw;
  } catch (const std::exception& error) {
    reason = error.what();
  } catch (...) {
  }
  try {
    std::throw_with_nested(
        DataLoaderError("DataLoader: " + at.in_words() + ": " + reason, epoch, at.batch(), at.indices()));
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

struct Pass::State {
  struct Result {
    std::shared_ptr<void> batch;
    std::exception_ptr error;
  };

  PassPlan plan;
  MakeBatch make;
  int64_t taken;  // by the consumer: all batches before this one

  std::mutex mutex;
  std::condition_variable work, done;
  int64_t next_to_make;
  std::map<int64_t, Result> made;
  // One entry for each worker that is making a batch.
  std::map<int64_t, const BatchInProgress*> in_progress;
  int running = 0;  // number of workers
  bool stopped = false;

  Result make_batch(int64_t number, bool on_worker);
  void run_worker() noexcept;
  Result wait_for(int64_t number);
  // What delays a batch, as text; call with the mutex held.
  std::string where_at(int64_t number) const;
};

Pass::State::Result Pass::State::make_batch(int64_t number, bool on_worker) {
  const std::span<const int64_t> indices = plan.batch(number);
  BatchInProgress at(plan.random, number, indices, on_worker);
  struct Shown {
    State& state;
    int64_t number;
    Shown(State& s, const BatchInProgress& batch) : state(s), number(batch.batch()) {
      const std::lock_guard lock(state.mutex);
      state.in_progress[number] = &batch;
    }
    ~Shown() {
      const std::lock_guard lock(state.mutex);
      state.in_progress.erase(number);
    }
  } const shown(*this, at);
  try {
    return {make(indices, at), nullptr};
  } catch (...) {
    return {nullptr, named(at, plan.random.epoch)};
  }
}

void Pass::State::run_worker() noexcept {
#ifdef _OPENMP
  omp_set_num_threads(1);  // the cores are for the training
#endif
  while (true) {
    int64_t number = 0;
    {
      std::unique_lock lock(mutex);
      work.wait(lock, [&] { return stopped || next_to_make >= plan.batches() || next_to_make < taken + plan.ahead; });
      if (stopped || next_to_make >= plan.batches()) break;
      number = next_to_make++;
    }
    Result result = make_batch(number, true);
    {
      const std::lock_guard lock(mutex);
      if (!stopped) made[number] = std::move(result);
    }
    done.notify_all();
  }
  // Under the mutex: a thread that waits for the last worker may destroy the condition variable right after.
  const std::lock_guard lock(mutex);
  --running;
  done.notify_all();
}

std::string Pass::State::where_at(int64_t number) const {
  const auto found = in_progress.find(number);
  return found == in_progress.end() ? "batch " + std::to_string(number) : found->second->in_words();
}

Pass::State::Result Pass::State::wait_for(int64_t number) {
  std::unique_lock lock(mutex);
  const auto is_there = [&] { return made.contains(number); };
  if (plan.limit.count() == 0) {
    done.wait(lock, is_there);
  } else if (!done.wait_for(lock, plan.limit, is_there)) {
    throw TimeoutError(
        "DataLoader: {} has taken longer than {} ms on a worker; give the DataLoader a longer timeout, more workers, "
        "or find what the dataset waits for",
        where_at(number), plan.limit.count());
  }
  return std::move(made.extract(number).mapped());
}

Pass::Pass(PassPlan plan, MakeBatch make) : state_(std::make_shared<State>()) {
  state_->plan = std::move(plan);
  state_->make = std::move(make);
  state_->taken = state_->next_to_make = state_->plan.first;
  progress_ = std::make_shared<PassProgress>();
  progress_->epoch = state_->plan.random.epoch;
  progress_->taken = state_->plan.first;
  // The first thread to request its generator gets the first seed: make sure that it is not a worker.
  default_generator();
  const int64_t left = state_->plan.batches() - state_->plan.first;
  const auto workers = static_cast<int>(std::min<int64_t>(state_->plan.workers, left));
  state_->running = workers;
  try {
    for (int i = 0; i < workers; ++i)
      threads_.emplace_back([state = state_] { state->run_worker(); });
  } catch (...) {
    // The workers that could not be started are not running.
    {
      const std::lock_guard lock(state_->mutex);
      state_->running -= workers - static_cast<int>(threads_.size());
    }
    stop();
    throw;
  }
}

Pass::~Pass() { stop(); }

void Pass::stop() noexcept {
  {
    std::unique_lock lock(state_->mutex);
    state_->stopped = true;
    state_->made.clear();
    state_->work.notify_all();
    const auto all_ended = [&] { return state_->running == 0; };
    if (state_->plan.limit.count() > 0 && !state_->done.wait_for(lock, state_->plan.limit, all_ended)) {
      for (const auto& [number, at] : state_->in_progress) {
        warn({"DataLoader: a worker is still at " + at->in_words() + ", " + std::to_string(state_->plan.limit.count()) +
                  " ms after the pass has ended; it is left running",
              "find what the dataset waits for, or give the DataLoader a longer timeout"});
      }
      for (std::thread& thread : threads_)
        thread.detach();
      threads_.clear();
    }
  }
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
}

std::shared_ptr<void> Pass::next() {
  State& state = *state_;
  if (failed_) return nullptr;
  if (state.taken >= state.plan.batches()) {
    progress_->has_ended = true;
    return nullptr;
  }
  failed_ = true;  // unless the batch arrives
  State::Result result = threads_.empty() ? state.make_batch(state.taken, false) : state.wait_for(state.taken);
  if (result.error) {
    stop();
    std::rethrow_exception(result.error);
  }
  failed_ = false;
  {
    const std::lock_guard lock(state.mutex);
    progress_->taken = ++state.taken;
  }
  state.work.notify_all();
  return std::move(result.batch);
}

}  // namespace brigade::data::detail
