// Schedules that decay the learning rate, and schedules by a function of the caller.
#pragma once

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

#include <functional>
#include <vector>

namespace brigade::optim {

// initial rate * f(epoch). One function for all groups, or one for each (otherwise ValueError).
class LambdaLR : public LRScheduler {
 public:
  using Function = std::function<double(int64_t epoch)>;
  LambdaLR(Optimizer& optimizer, Function function, SourceLocation where = SourceLocation::current())
      : LambdaLR(optimizer, std::vector<Function>{std::move(function)}, where) {}
  LambdaLR(Optimizer& optimizer, std::vector<Function> functions, SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;

 private:
  std::vector<Function> functions_;
};

// rate * f(epoch), from epoch 1 on.
class MultiplicativeLR : public LRScheduler {
 public:
  using Function = LambdaLR::Function;
  MultiplicativeLR(Optimizer& optimizer, Function function, SourceLocation where = SourceLocation::current())
      : MultiplicativeLR(optimizer, std::vector<Function>{std::move(function)}, where) {}
  MultiplicativeLR(Optimizer& optimizer, std::vector<Function> functions,
                   SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;

 private:
  std::vector<Function> functions_;
};

// rate * gamma every `step_size` epochs. Throws ValueError for a step_size below 1.
class StepLR : public LRScheduler {
 public:
  StepLR(Optimizer& optimizer, int64_t step_size, double gamma = 0.1, SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  int64_t step_size_;
  double gamma_;
};

// rate * gamma at each of the epochs `milestones`, in any order; an epoch that is named several times counts each time.
class MultiStepLR : public LRScheduler {
 public:
  MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma = 0.1,
              SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  std::vector<int64_t> milestones_;  // sorted
  double gamma_;
};

// rate * gamma every epoch.
class ExponentialLR : public LRScheduler {
 public:
  ExponentialLR(Optimizer& optimizer, double gamma, SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  double gamma_;
};

// initial rate * (1 - epoch / total_iters)^power, 0 from total_iters on. Throws ValueError for
// total_iters below 1.
class PolynomialLR : public LRScheduler {
 public:
  explicit PolynomialLR(Optimizer& optimizer, int64_t total_iters = 5, double power = 1,
                        SourceLocation where = SourceLocation::current());

 protected:
  std::vector<double> next_lr() override;
  std::vector<double> closed_form_lr() override;
  void visit(const SchedulerVisitor& visitor) override;

 private:
  int64_t total_iters_;
  double power_;
};

// --- Cosine annealing, without and with warm restarts (Loshchilov and Hutter, "SGDR", arXiv 1608.03983).

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
