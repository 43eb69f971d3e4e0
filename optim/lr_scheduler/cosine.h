// Cosine annealing, without and with warm restarts (Loshchilov and Hutter, "SGDR", arXiv
// 1608.03983).
#pragma once

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

namespace brigade::optim {

// From the initial rate to eta_min along half a cosine in t_max epochs, then back up in the same way, periodically.
// Throws ValueError for a t_max below 1.
class CosineAnnealingLR : public LRScheduler {
 public:
  CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min = 0,
                    SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  int64_t t_max_;
  double eta_min_;
};

// From the initial rate to eta_min along half a cosine in t_0 epochs, then again from the initial rate; each period is
// t_mult times as long as the previous one. Throws ValueError for a t_0 or t_mult below 1.
class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult = 1, double eta_min = 0,
                              SourceLocation where = SourceLocation::current());
  void step(SourceLocation where = SourceLocation::current()) override;

 protected:
  std::vector<double> next_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  int64_t t_0_, t_mult_;
  double eta_min_;
  int64_t period_, elapsed_ = 0;  // length of the current period, and epochs since it began
};

}  // namespace brigade::optim
