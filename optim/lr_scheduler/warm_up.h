// Schedules for the first steps. A warm-up followed by another schedule:
//
//   optim::SequentialLR scheduler(optimizer,
//                                 {std::make_shared<optim::LinearLR>(optimizer, 0.01, 1.0, 500),
//                                  std::make_shared<optim::CosineAnnealingLR>(optimizer, 10000)},
//                                 {500});
#pragma once

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

namespace brigade::optim {

// initial rate * factor for `total_iters` epochs, then the initial rate. Throws ValueError unless 0
// <= factor <= 1.
class ConstantLR : public LRScheduler {
 public:
  explicit ConstantLR(Optimizer& optimizer, double factor = 1.0 / 3, int64_t total_iters = 5,
                      SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  double factor_;
  int64_t total_iters_;
};

// From initial rate * start_factor to initial rate * end_factor in equal steps over `total_iters`
// epochs. Throws ValueError unless 0 < start_factor <= 1, 0 <= end_factor <= 1, and total_iters is
// at least 1.
class LinearLR : public LRScheduler {
 public:
  explicit LinearLR(Optimizer& optimizer, double start_factor = 1.0 / 3, double end_factor = 1.0,
                    int64_t total_iters = 5, SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  double start_factor_, end_factor_;
  int64_t total_iters_;
};

}  // namespace brigade::optim
