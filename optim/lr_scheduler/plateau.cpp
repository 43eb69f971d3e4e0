// Counts the epochs without a better metric, lowers the rates, and waits for the cooldown.
#include <brigade/optim/lr_scheduler/plateau.h>

#include <brigade/optim/lr_scheduler/lr_scheduler.h>

#include <algorithm>

namespace brigade::optim {

ReduceLROnPlateau::ReduceLROnPlateau(Optimizer& optimizer, const ReduceLROnPlateauOptions& o, SourceLocation where)
    : optimizer_(&optimizer), options_(o) {
  if (!(o.factor < 1))
    throw ValueError(detail::users_line(where), "ReduceLROnPlateau: Factor should be < 1.0, but got {}", o.factor);
  options_.min_lr = detail::per_group("ReduceLROnPlateau", "min_lr", o.min_lr, optimizer.groups(), where);
  const double infinity = std::numeric_limits<double>::infinity();
  best_ = o.mode == PlateauMode::Min ? infinity : -infinity;
  for (size_t g = 0; g < optimizer.groups(); ++g)
    last_lr_.push_back(optimizer.lr(g));
}

bool ReduceLROnPlateau::is_better(double metric) const {
  const bool relative = options_.threshold_mode == ThresholdMode::Relative;
  if (options_.mode == PlateauMode::Min)
    return metric < (relative ? best_ * (1 - options_.threshold) : best_ - options_.threshold);
  return metric > (relative ? best_ * (options_.threshold + 1) : best_ + options_.threshold);
}

void ReduceLROnPlateau::step(double metric, SourceLocation where) {
  if (last_lr_.size() != optimizer_->groups()) {
    throw ValueError(where,
                     "ReduceLROnPlateau: the optimizer has {} parameter groups, but the scheduler was made for {}; add "
                     "groups before making schedulers",
                     optimizer_->groups(), last_lr_.size());
  }
  ++last_epoch_;
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (cooldown_left_ > 0) {
    --cooldown_left_;
    bad_epochs_ = 0;
  }
  const bool reduce = bad_epochs_ > options_.patience;
  for (size_t g = 0; g < last_lr_.size(); ++g) {
    const double old = optimizer_->lr(g);
    const double fresh = std::max(old * options_.factor, options_.min_lr[g]);
    if (reduce && old - fresh > options_.eps) optimizer_->set_lr(g, fresh, where, "ReduceLROnPlateau.step()");
    last_lr_[g] = optimizer_->lr(g);
  }
  if (!reduce) return;
  cooldown_left_ = options_.cooldown;
  bad_epochs_ = 0;
}

void ReduceLROnPlateau::visit(const SchedulerVisitor& visitor) {
  visitor("mode", options_.mode), visitor("factor", options_.factor), visitor("patience", options_.patience);
  visitor("threshold", options_.threshold), visitor("threshold_mode", options_.threshold_mode);
  visitor("cooldown", options_.cooldown), visitor("min_lr", options_.min_lr), visitor("eps", options_.eps);
  visitor("best", best_), visitor("last_epoch", last_epoch_), visitor("bad_epochs", bad_epochs_);
  visitor("cooldown_left", cooldown_left_), visitor("last_lr", last_lr_);
}

SchedulerState ReduceLROnPlateau::state_dict() const {
  // Saving changes nothing: the visitor writes back the values that it read.
  return detail::save_scheduler("ReduceLROnPlateau", [this](const SchedulerVisitor& visitor) {
    const_cast<ReduceLROnPlateau*>(this)->visit(visitor);
  });
}

void ReduceLROnPlateau::load_state_dict(const SchedulerState& state, SourceLocation where) {
  detail::load_scheduler(
      state, "ReduceLROnPlateau", [this](const SchedulerVisitor& visitor) { visit(visitor); }, where);
}

}  // namespace brigade::optim
