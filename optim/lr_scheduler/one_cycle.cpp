// Rate and momentum in each phase of the cycle, by cosine or linear annealing.
#include <brigade/optim/lr_scheduler/one_cycle.h>

#include <cmath>
#include <numbers>

namespace brigade::optim {
namespace {

constexpr const char* kName = "OneCycleLR";

int64_t checked_steps(const OneCycleOptions& o, SourceLocation where) {
  const auto positive = [&](const char* what, int64_t value) { detail::check_positive(kName, what, value, where); };
  if (o.total_steps != 0) {
    positive("total_steps", o.total_steps);
    return o.total_steps;
  }
  if (o.epochs == 0 || o.steps_per_epoch == 0)
    throw ValueError(detail::users_line(where),
                     "OneCycleLR: You must define either total_steps OR (epochs AND steps_per_epoch)");
  positive("epochs", o.epochs);
  positive("steps_per_epoch", o.steps_per_epoch);
  return o.epochs * o.steps_per_epoch;
}

}  // namespace

OneCycleLR::OneCycleLR(Optimizer& optimizer, const OneCycleOptions& o, SourceLocation where)
    : LRScheduler(optimizer),
      total_steps_(checked_steps(o, where)),
      pct_start_(o.pct_start),
      strategy_(o.anneal_strategy),
      cycle_momentum_(o.cycle_momentum),
      three_phase_(o.three_phase),
      max_lrs_(detail::per_group(kName, "max_lr", o.max_lr, optimizer.groups(), where)),
      base_momentums_(detail::per_group(kName, "base_momentum", o.base_momentum, optimizer.groups(), where)),
      max_momentums_(detail::per_group(kName, "max_momentum", o.max_momentum, optimizer.groups(), where)) {
  if (!(pct_start_ >= 0 && pct_start_ <= 1))
    throw ValueError(detail::users_line(where), "OneCycleLR: Expected float between 0 and 1 pct_start, but got {}",
                     pct_start_);
  if (cycle_momentum_ && !optimizer.has_momentum())
    throw ValueError(
        detail::users_line(where),
        "OneCycleLR: optimizer must support momentum or beta1 with `cycle_momentum` option enabled; {} has neither",
        optimizer.name());
  for (size_t g = 0; g < max_lrs_.size(); ++g) {
    initial_lrs_.push_back(max_lrs_[g] / o.div_factor);
    min_lrs_.push_back(initial_lrs_[g] / o.final_div_factor);
    optimizer.set_initial_lr(g, initial_lrs_[g]);
  }
  base_lrs_ = initial_lrs_;
  start(where);
}

double OneCycleLR::anneal(double from, double to, double part) const {
  if (strategy_ == AnnealStrategy::Linear) return (to - from) * part + from;
  return to + (from - to) / 2.0 * (std::cos(std::numbers::pi * part) + 1);
}

std::vector<double> OneCycleLR::next_lr() {
  if (last_epoch_ > total_steps_) {
    throw ValueError(called_at_, "OneCycleLR: Tried to step {} times. The specified number of total steps is {}",
                     last_epoch_, total_steps_);
  }
  struct Phase {
    double end;
    const std::vector<double>&from_lr, &to_lr, &from_momentum, &to_momentum;
  };
  const auto steps = static_cast<double>(total_steps_);
  std::vector<Phase> phases{{pct_start_ * steps - 1, initial_lrs_, max_lrs_, max_momentums_, base_momentums_}};
  if (three_phase_) {
    phases.push_back({2 * pct_start_ * steps - 2, max_lrs_, initial_lrs_, base_momentums_, max_momentums_});
    phases.push_back({steps - 1, initial_lrs_, min_lrs_, max_momentums_, max_momentums_});
  } else {
    phases.push_back({steps - 1, max_lrs_, min_lrs_, base_momentums_, max_momentums_});
  }
  const auto step = static_cast<double>(last_epoch_);
  size_t now = 0;
  double begin = 0;
  while (now + 1 < phases.size() && step > phases[now].end)
    begin = phases[now++].end;
  const Phase& phase = phases[now];
  // A phase of length 0 is at its end.
  const double part = phase.end == begin ? 1 : (step - begin) / (phase.end - begin);
  std::vector<double> rates;
  for (size_t g = 0; g < max_lrs_.size(); ++g) {
    rates.push_back(anneal(phase.from_lr[g], phase.to_lr[g], part));
    if (cycle_momentum_) optimizer().set_momentum(g, anneal(phase.from_momentum[g], phase.to_momentum[g], part));
  }
  return rates;
}

void OneCycleLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("total_steps", total_steps_), visitor("pct_start", pct_start_), visitor("anneal_strategy", strategy_);
  visitor("cycle_momentum", cycle_momentum_), visitor("three_phase", three_phase_);
  visitor("initial_lr", initial_lrs_), visitor("max_lr", max_lrs_), visitor("min_lr", min_lrs_);
  visitor("base_momentum", base_momentums_), visitor("max_momentum", max_momentums_);
}

}  // namespace brigade::optim
