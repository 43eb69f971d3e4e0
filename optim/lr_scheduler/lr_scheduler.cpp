// Steps of a schedule, the rates of its groups, and saving and loading its state.
#include <brigade/optim/lr_scheduler/lr_scheduler.h>

#include <brigade/core/place.h>
#include <brigade/core/warning.h>
#include <brigade/nn/call_scope.h>

namespace brigade::optim {

LRScheduler::LRScheduler(Optimizer& optimizer) : optimizer_(&optimizer) {
  for (size_t g = 0; g < optimizer.groups(); ++g)
    base_lrs_.push_back(optimizer.initial_lr(g));
  last_lr_ = current_lr();
}

void LRScheduler::start(SourceLocation where) {
  struct Initial {
    bool& flag;
    ~Initial() { flag = false; }
  } initial{is_initial_};
  is_initial_ = true;
  step(where);
}

void LRScheduler::step(SourceLocation where) {
  called_at_ = detail::users_line(where);
  look_for_skipped_step(where);
  ++last_epoch_;
  set_lr(next_lr());
}

void LRScheduler::look_for_skipped_step(SourceLocation where) {
  const bool only_skipped = optimizer_->steps_skipped() > skipped_before_ && optimizer_->steps_taken() == taken_before_;
  taken_before_ = optimizer_->steps_taken();
  skipped_before_ = optimizer_->steps_skipped();
  if (!only_skipped || is_initial_) return;
  const std::string skipped_at = to_string(optimizer_->skipped_at());
  warn({name() + ".step() at " + to_string(where) + " follows a skipped step.\nwhy: the step of " + optimizer_->name() +
            " at " + skipped_at +
            " was skipped, since gradients were not finite; the learning rates move on and the weights do not.",
        "call it only when the optimizer has stepped: if (scaler.step(optimizer)) scheduler.step(); the scaler's "
        "step() returns whether it has"});
}

void LRScheduler::restart(SourceLocation where) {
  called_at_ = detail::users_line(where);
  last_epoch_ = 0;
  set_lr(closed_form_lr());
}

std::string LRScheduler::name() const { return nn::readable_type_name(typeid(*this)); }

std::vector<double> LRScheduler::current_lr() const { return scaled_lr(1); }

std::vector<double> LRScheduler::scaled_lr(double factor) const {
  std::vector<double> rates;
  rates.reserve(base_lrs_.size());
  for (size_t g = 0; g < optimizer_->groups(); ++g)
    rates.push_back(optimizer_->lr(g) * factor);
  return rates;
}

void LRScheduler::set_lr(const std::vector<double>& rates) {
  if (base_lrs_.size() != optimizer_->groups()) {
    throw ValueError(called_at_,
                     "{}: the optimizer has {} parameter groups, but the scheduler was made for {}; add "
                     "groups before making schedulers",
                     name(), optimizer_->groups(), base_lrs_.size());
  }
  for (size_t g = 0; g < rates.size(); ++g)
    optimizer_->set_lr(g, rates[g], called_at_, name() + (is_initial_ ? "" : ".step()"));
  last_lr_ = rates;
}

void LRScheduler::visit(const SchedulerVisitor& visitor) {
  visitor("last_epoch", last_epoch_);
  visitor("base_lr", base_lrs_);
  visitor("last_lr", last_lr_);
}

SchedulerState LRScheduler::state_dict() const {
  // Saving changes nothing: the visitor writes back the values that it read.
  return detail::save_scheduler(
      name(), [this](const SchedulerVisitor& visitor) { const_cast<LRScheduler*>(this)->visit(visitor); });
}

void LRScheduler::load_state_dict(const SchedulerState& state, SourceLocation where) {
  detail::load_scheduler(
      state, name(), [this](const SchedulerVisitor& visitor) { visit(visitor); }, where);
}

std::vector<double> detail::per_group(const char* schedule, const char* what, const std::vector<double>& values,
                                      size_t groups, SourceLocation where) {
  if (values.size() == groups) return values;
  if (values.size() == 1) return std::vector<double>(groups, values.front());
  throw ValueError(users_line(where),
                   "{}: {} must have the same length as the optimizer's parameter groups, or be one number: {} has "
                   "{} values, there are {} groups",
                   schedule, what, what, values.size(), groups);
}

void detail::check_positive(const char* schedule, const char* what, int64_t value, SourceLocation where) {
  if (value < 1)
    throw ValueError(users_line(where), "{}: Expected positive integer {}, but got {}", schedule, what, value);
}

SourceLocation detail::users_line(SourceLocation where) {
  return is_in_standard_library(where) ? SourceLocation() : where;
}

}  // namespace brigade::optim
