// A thread that runs works in the order in which they were posted: for transports whose calls
// block.
#pragma once

#include <brigade/dist/groups/work.h>

#include <functional>
#include <string>
#include <thread>

namespace brigade::dist {

class WorkQueue {
 public:
  // `timeout` is the group's: what a work runs has to end by itself within about that time.
  explicit WorkQueue(std::chrono::milliseconds timeout);
  // Runs what is left, then ends the thread.
  ~WorkQueue();
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  // `run` is called on the thread, and may say when all ranks had arrived; what it throws is thrown
  // by the Work's wait(). `description` names the work when it does not come to its end. When a
  // wait takes too long `give_up` is called with how long it took, to throw what is known then;
  // otherwise a TimeoutError is thrown. A Work may outlive the queue.
  WorkPtr post(std::string description, std::function<void(WorkTimes&)> run,
               std::function<void(std::chrono::milliseconds)> give_up = nullptr);
  // Nothing is running or waiting to run.
  bool idle() const;

 private:
  struct State;
  friend class QueuedWork;
  std::shared_ptr<State> state_;
  std::chrono::milliseconds timeout_;
  std::thread thread_;
};

}  // namespace brigade::dist
