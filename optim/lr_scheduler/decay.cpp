// The rates of lambda, multiplicative, step, multi-step, exponential, polynomial and cosine decay.
#include <brigade/optim/lr_scheduler/decay.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace brigade::optim {
namespace {

std::vector<LambdaLR::Function> for_groups(const char* schedule, std::vector<LambdaLR::Function> functions,
                                           size_t groups, SourceLocation where) {
  for (const LambdaLR::Function& function : functions) {
    if (!function) throw ValueError(where, "{}: lr_lambda should be a function, but got an empty one", schedule);
  }
  if (functions.size() == 1 && groups > 1) functions.resize(groups, functions.front());
  if (functions.size() != groups) {
    throw ValueError(where, "{}: Expected {} lr_lambdas, but got {}", schedule, groups, functions.size());
  }
  return functions;
}

}  // namespace

LambdaLR::LambdaLR(Optimizer& optimizer, std::vector<Function> functions, SourceLocation where)
    : LRScheduler(optimizer),
      functions_(for_groups("LambdaLR", std::move(functions), optimizer.groups(), detail::users_line(where))) {
  start(where);
}

std::vector<double> LambdaLR::next_lr() {
  size_t g = 0;
  return from_base([&](double base) { return base * functions_[g++](last_epoch_); });
}

MultiplicativeLR::MultiplicativeLR(Optimizer& optimizer, std::vector<Function> functions, SourceLocation where)
    : LRScheduler(optimizer),
      functions_(for_groups("MultiplicativeLR", std::move(functions), optimizer.groups(), detail::users_line(where))) {
  start(where);
}

std::vector<double> MultiplicativeLR::next_lr() {
  std::vector<double> rates = current_lr();
  for (size_t g = 0; !is_initial_ && g < functions_.size(); ++g)
    rates[g] *= functions_[g](last_epoch_);
  return rates;
}

StepLR::StepLR(Optimizer& optimizer, int64_t step_size, double gamma, SourceLocation where)
    : LRScheduler(optimizer), step_size_(step_size), gamma_(gamma) {
  detail::check_positive("StepLR", "step_size", step_size, where);
  start(where);
}

std::vector<double> StepLR::next_lr() {
  return last_epoch_ == 0 || last_epoch_ % step_size_ != 0 ? current_lr() : scaled_lr(gamma_);
}

std::vector<double> StepLR::closed_form_lr() {
  return from_base([&](double base) { return base * std::pow(gamma_, static_cast<double>(last_epoch_ / step_size_)); });
}

void StepLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("step_size", step_size_), visitor("gamma", gamma_);
}

MultiStepLR::MultiStepLR(Optimizer& optimizer, std::vector<int64_t> milestones, double gamma, SourceLocation where)
    : LRScheduler(optimizer), milestones_(std::move(milestones)), gamma_(gamma) {
  std::sort(milestones_.begin(), milestones_.end());
  start(where);
}

std::vector<double> MultiStepLR::next_lr() {
  const auto times = std::count(milestones_.begin(), milestones_.end(), last_epoch_);
  return times == 0 ? current_lr() : scaled_lr(std::pow(gamma_, static_cast<double>(times)));
}

std::vector<double> MultiStepLR::closed_form_lr() {
  const auto passed = std::upper_bound(milestones_.begin(), milestones_.end(), last_epoch_) - milestones_.begin();
  return from_base([&](double base) { return base * std::pow(gamma_, static_cast<double>(passed)); });
}

void MultiStepLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("milestones", milestones_), visitor("gamma", gamma_);
}

ExponentialLR::ExponentialLR(Optimizer& optimizer, double gamma, SourceLocation where)
    : LRScheduler(optimizer), gamma_(gamma) {
  start(where);
}

std::vector<double> ExponentialLR::next_lr() { return is_initial_ ? current_lr() : scaled_lr(gamma_); }

std::vector<double> ExponentialLR::closed_form_lr() {
  return from_base([&](double base) { return base * std::pow(gamma_, static_cast<double>(last_epoch_)); });
}

void ExponentialLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("gamma", gamma_);
}

PolynomialLR::PolynomialLR(Optimizer& optimizer, int64_t total_iters, double power, SourceLocation where)
    : LRScheduler(optimizer), total_iters_(total_iters), power_(power) {
  detail::check_positive("PolynomialLR", "total_iters", total_iters, where);
  start(where);
}

std::vector<double> PolynomialLR::next_lr() {
  if (is_initial_ || last_epoch_ > total_iters_) return current_lr();
  const auto left = [&](int64_t epoch) { return 1 - static_cast<double>(epoch) / static_cast<double>(total_iters_); };
  return scaled_lr(std::pow(left(last_epoch_) / left(last_epoch_ - 1), power_));
}

std::vector<double> PolynomialLR::closed_form_lr() {
  const auto passed = static_cast<double>(std::min(total_iters_, last_epoch_));
  const double left = std::pow(1 - passed / static_cast<double>(total_iters_), power_);
  return from_base([&](double base) { return base * left; });
}

void PolynomialLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("total_iters", total_iters_), visitor("power", power_);
}

// --- Cosine annealing.

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min, SourceLocation where)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  detail::check_positive("CosineAnnealingLR", "t_max", t_max, where);
  start(where);
}

std::vector<double> CosineAnnealingLR::next_lr() {
  std::vector<double> rates = current_lr();
  if (is_initial_) return rates;
  const auto period = static_cast<double>(t_max_);
  const auto height = [&](int64_t epoch) {
    return 1 + std::cos(std::numbers::pi * static_cast<double>(epoch) / period);
  };
  // At the bottom the rate is eta_min, and no factor leads up from there.
  const bool leaves_bottom = (last_epoch_ - 1 - t_max_) % (2 * t_max_) == 0;
  const double rise = 1 - std::cos(std::numbers::pi / period);
  const double ratio = leaves_bottom ? 0 : height(last_epoch_) / height(last_epoch_ - 1);
  for (size_t g = 0; g < rates.size(); ++g) {
    rates[g] =
        leaves_bottom ? rates[g] + (base_lrs_[g] - eta_min_) * rise / 2 : ratio * (rates[g] - eta_min_) + eta_min_;
  }
  return rates;
}

std::vector<double> CosineAnnealingLR::closed_form_lr() {
  const double height = 1 + std::cos(std::numbers::pi * static_cast<double>(last_epoch_) / static_cast<double>(t_max_));
  return from_base([&](double base) { return eta_min_ + (base - eta_min_) * height / 2; });
}

void CosineAnnealingLR::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("t_max", t_max_), visitor("eta_min", eta_min_);
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(Optimizer& optimizer, int64_t t_0, int64_t t_mult,
                                                         double eta_min, SourceLocation where)
    : LRScheduler(optimizer), t_0_(t_0), t_mult_(t_mult), eta_min_(eta_min), period_(t_0) {
  detail::check_positive("CosineAnnealingWarmRestarts", "t_0", t_0, where);
  detail::check_positive("CosineAnnealingWarmRestarts", "t_mult", t_mult, where);
  start(where);
}

void CosineAnnealingWarmRestarts::step(SourceLocation where) {
  if (last_epoch_ < 0) {
    elapsed_ = 0;
    period_ = t_0_;
  } else if (++elapsed_ >= period_) {
    elapsed_ -= period_;
    period_ *= t_mult_;
  }
  LRScheduler::step(where);
}

std::vector<double> CosineAnnealingWarmRestarts::next_lr() {
  const double height = 1 + std::cos(std::numbers::pi * static_cast<double>(elapsed_) / static_cast<double>(period_));
  return from_base([&](double base) { return eta_min_ + (base - eta_min_) * height / 2; });
}

void CosineAnnealingWarmRestarts::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("t_0", t_0_), visitor("t_mult", t_mult_), visitor("eta_min", eta_min_);
  visitor("period", period_), visitor("elapsed", elapsed_);
}

}  // namespace brigade::optim
