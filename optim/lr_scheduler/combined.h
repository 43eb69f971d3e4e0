// Schedules composed of other schedules.
#pragma once

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

#include <memory>
#include <vector>

namespace brigade::optim {

// One schedule after another: at each of the epochs `milestones`, which are one fewer than the schedules, the next one
// begins with its epoch 0. All schedules belong to one optimizer, which is reset to the initial rates on construction.
// Throws ValueError if these conditions do not hold, and for schedules that cannot begin in the middle: a SequentialLR,
// and a ChainedScheduler except as the first.
class SequentialLR : public LRScheduler {
 public:
  SequentialLR(Optimizer& optimizer, std::vector<std::shared_ptr<LRScheduler>> schedulers,
               std::vector<int64_t> milestones, SourceLocation where = SourceLocation::current());
  void step(SourceLocation where = SourceLocation::current()) override;

 protected:
  std::vector<double> next_lr() override { return current_lr(); }
  void visit(const SchedulerVisitor& visitor) override;
  void undo() override;

 private:
  size_t running_at(int64_t epoch) const;
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
  std::vector<int64_t> milestones_;
};

// All schedules at once: each changes the rate that the previous one has set. Throws ValueError unless there is at
// least one and all belong to one optimizer.
class ChainedScheduler : public LRScheduler {
 public:
  explicit ChainedScheduler(std::vector<std::shared_ptr<LRScheduler>> schedulers,
                            SourceLocation where = SourceLocation::current());
  void step(SourceLocation where = SourceLocation::current()) override;

 protected:
  std::vector<double> next_lr() override { return current_lr(); }
  void visit(const SchedulerVisitor& visitor) override;
  void undo() override;

 private:
  std::vector<std::shared_ptr<LRScheduler>> schedulers_;
};

}  // namespace brigade::optim
