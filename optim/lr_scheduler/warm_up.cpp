// The rates of ConstantLR and LinearLR: from the previous rate, or in closed form.
#include <brigade/optim/lr_scheduler/warm_up.h>

#include <algorithm>

namespace brigade::optim {

ConstantLR::ConstantLR(Optimizer& optimizer, double factor, int64_t total_iters, SourceLocation where)
    : LRScheduler(optimizer), factor_(factor), total_iters_(total_iters) {
  if (!(factor >= 0 && factor <= 1))
    throw ValueError(detail::users_line(where),
                     "ConstantLR: Constant multiplicative factor expected to be between 0 and 1, but got {}", factor);
  start(where);
}

std::vector<double> ConstantLR::next_lr() {
  if (last_epoch_ == 0) return scaled_lr(factor_);
  if (last_epoch_ != total_iters_) return current_lr();
  if (factor_ == 0) return base_lrs_;
  return scaled_lr(1.0 / factor_);
}

std::vector<double> ConstantLR::closed_form_lr() {
  return from_base([&](double base) { return base * (factor_ + (last_epoch_ >= total_iters_ ? 1 - factor_ : 0.0)); });
}

void ConstantLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("factor", factor_), visitor("total_iters", total_iters_);
}

LinearLR::LinearLR(Optimizer& optimizer, double start_factor, double end_factor, int64_t total_iters,
                   SourceLocation where)
    : LRScheduler(optimizer), start_factor_(start_factor), end_factor_(end_factor), total_iters_(total_iters) {
  if (!(start_factor > 0 && start_factor <= 1)) {
    throw ValueError(
        detail::users_line(where),
        "LinearLR: Starting multiplicative factor expected to be greater than 0 and less or equal to 1, but got {}",
        start_factor);
  }
  if (!(end_factor >= 0 && end_factor <= 1))
    throw ValueError(detail::users_line(where),
                     "LinearLR: Ending multiplicative factor expected to be between 0 and 1, but got {}", end_factor);
  detail::check_positive("LinearLR", "total_iters", total_iters, where);
  start(where);
}

std::vector<double> LinearLR::next_lr() {
  if (last_epoch_ == 0) return scaled_lr(start_factor_);
  if (is_initial_ || last_epoch_ > total_iters_) return current_lr();
  const double rise = end_factor_ - start_factor_;
  return scaled_lr(
      1.0 + rise / (static_cast<double>(total_iters_) * start_factor_ + static_cast<double>(last_epoch_ - 1) * rise));
}

std::vector<double> LinearLR::closed_form_lr() {
  const auto passed = static_cast<double>(std::min(total_iters_, last_epoch_));
  return from_base([&](double base) {
    return base * (start_factor_ + (end_factor_ - start_factor_) * passed / static_cast<double>(total_iters_));
  });
}

void LinearLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("start_factor", start_factor_), visitor("end_factor", end_factor_), visitor("total_iters", total_iters_);
}

}  // namespace brigade::optim
