// The loop of the queue's thread, the Work that waits for one job, and a Work that forwards to several.
#include <brigade/dist/groups/work_queue.h>

#include <brigade/core/clock.h>
#include <brigade/core/error.h>
#include <brigade/dist/groups/unfinished.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>

namespace brigade::dist {

// --- The loop of the queue's thread, and the Work that waits for one job.

// Shared by the queue, its thread and the Works.
struct WorkQueue::State {
  struct Job {
    std::function<void(WorkTimes&)> run;
    std::string description;
    WorkTimes times;
    bool complete = false;
    std::exception_ptr error;
  };

  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> jobs;  // a job stays in front while it runs
  bool stop = false;

  void loop() {
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return stop || !jobs.empty(); });
      if (jobs.empty()) return;
      const std::shared_ptr<Job> job = jobs.front();
      lock.unlock();
      std::exception_ptr error;
      try {
        if (job->run) job->run(job->times);
      } catch (...) {
        error = std::current_exception();
      }
      job->times.reduced = now_ns();
      job->run = nullptr;  // drops the tensors
      lock.lock();
      jobs.pop_front();
      job->error = error;
      job->complete = true;
      changed.notify_all();
    }
  }
};

class QueuedWork final : public Work {
 public:
  QueuedWork(std::shared_ptr<WorkQueue::State> state, std::shared_ptr<WorkQueue::State::Job> job,
             std::chrono::milliseconds timeout, std::function<void(std::chrono::milliseconds)> give_up)
      : state_(std::move(state)), job_(std::move(job)), timeout_(timeout), give_up_(std::move(give_up)) {}
  bool is_completed() override {
    std::lock_guard lock(state_->mutex);
    return job_->complete;
  }
  void wait() override {
    // The job applies the group's timeout itself; this longer timeout is for a stuck queue.
    wait(timeout_ * 2 + std::chrono::seconds(5));
  }
  void wait(std::chrono::milliseconds timeout) override {
    std::unique_lock lock(state_->mutex);
    if (!completes_within(lock, timeout)) {
      lock.unlock();
      if (give_up_) give_up_(timeout);
      throw TimeoutError("timed out after {} ms waiting for {}", timeout.count(), job_->description);
    }
    if (job_->error) std::rethrow_exception(job_->error);
  }
  bool completes_within(std::chrono::milliseconds time) override {
    std::unique_lock lock(state_->mutex);
    return completes_within(lock, time);
  }
  WorkTimes times() const override {
    std::lock_guard lock(state_->mutex);
    return job_->times;
  }

 private:
  bool completes_within(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds time) {
    const auto is_complete = [&] { return job_->complete; };
    const auto until = std::chrono::steady_clock::now() + time;
    while (std::chrono::steady_clock::now() < until && !job_->complete) {
      lock.unlock();
      const bool is_left = Unfinished::advance_all();
      lock.lock();
      if (!is_left) return state_->changed.wait_until(lock, until, is_complete);
      state_->changed.wait_for(lock, std::chrono::milliseconds(1), is_complete);
    }
    return job_->complete;
  }

  std::shared_ptr<WorkQueue::State> state_;
  std::shared_ptr<WorkQueue::State::Job> job_;
  std::chrono::milliseconds timeout_;
  std::function<void(std::chrono::milliseconds)> give_up_;
};

WorkQueue::WorkQueue(std::chrono::milliseconds timeout)
    : state_(std::make_shared<State>()), timeout_(timeout), thread_([state = state_] { state->loop(); }) {}

WorkQueue::~WorkQueue() {
  {
    std::lock_guard lock(state_->mutex);
    state_->stop = true;
  }
  state_->changed.notify_all();
  thread_.join();
}

WorkPtr WorkQueue::post(std::string description, std::function<void(WorkTimes&)> run,
                        std::function<void(std::chrono::milliseconds)> give_up) {
  auto job = std::make_shared<State::Job>();
  job->run = std::move(run);
  job->description = std::move(description);
  {
    std::lock_guard lock(state_->mutex);
    state_->jobs.push_back(job);
  }
  state_->changed.notify_all();
  return std::make_shared<QueuedWork>(state_, std::move(job), timeout_, std::move(give_up));
}

bool WorkQueue::idle() const {
  std::lock_guard lock(state_->mutex);
  return state_->jobs.empty();
}

// --- A Work that forwards to several works.

namespace {

class CombinedWork final : public Work {
 public:
  explicit CombinedWork(std::vector<WorkPtr> works) : works_(std::move(works)) {}

  // Queries all of them, since each query may make progress.
  bool is_completed() override {
    bool all = true;
    for (const WorkPtr& work : works_)
      all = work->is_completed() && all;
    return all;
  }
  void wait() override {
    for (const WorkPtr& work : works_)
      work->wait();
  }
  void wait(std::chrono::milliseconds timeout) override {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + timeout;
    for (const WorkPtr& work : works_) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now());
      work->wait(std::max(left, std::chrono::milliseconds(0)));
    }
  }
  WorkTimes times() const override {
    WorkTimes last;
    for (const WorkPtr& work : works_) {
      const WorkTimes each = work->times();
      last = {std::max(last.arrived, each.arrived), std::max(last.reduced, each.reduced)};
    }
    return last;
  }
  DeviceSpan on_device() const override {
    DeviceSpan span;
    for (const WorkPtr& work : works_) {
      const DeviceSpan each = work->on_device();
      if (each.ended == 0) return {};
      span = {span.began == 0 ? each.began : std::min(span.began, each.began), std::max(span.ended, each.ended)};
    }
    return span;
  }

 private:
  const std::vector<WorkPtr> works_;
};

}  // namespace

WorkPtr combined_work(std::vector<WorkPtr> works) { return std::make_shared<CombinedWork>(std::move(works)); }

}  // namespace brigade::dist
