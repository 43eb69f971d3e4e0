// Works of other works: a thread that runs them in order, and several combined into one.
#pragma once

#include <brigade/dist/groups/work.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace brigade::dist {

// --- A thread that runs works in the order in which they were posted, for transports whose calls block.

class WorkQueue {
 public:
  // `timeout`: the group's. The job of a work must end by itself within about that time.
  explicit WorkQueue(std::chrono::milliseconds timeout);
  // Runs the remaining jobs, then joins the thread.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `run` is called on the thread and may set the time when all ranks had arrived; the Work's wait() rethrows its
  // exception. `description` names the work in a TimeoutError. When a wait times out, `give_up` is called with its
  // duration and may throw a more specific error; otherwise wait() throws TimeoutError. A Work may outlive the queue.
  WorkPtr post(std::string description, std::function<void(WorkTimes&)> run,
               std::function<void(std::chrono::milliseconds)> give_up = nullptr);
  // Whether no job is running or queued.
  bool idle() const;

 private:
  struct State;
  friend class QueuedWork;
  std::shared_ptr<State> state_;
  std::chrono::milliseconds timeout_;
  std::thread thread_;
};

// --- Combines several works into one.

// Complete when all works are. wait() waits for each in order and throws the first error; a timeout covers all of them
// together. times() are those of the last work; the device span runs from the first start to the last end. Without
// works it is complete.
WorkPtr combined_work(std::vector<WorkPtr> works);

}  // namespace brigade::dist
