// The rates of both schedules: from the previous rate, or in closed form.
#include <brigade/optim/lr_scheduler/cosine.h>

#include <cmath>
#include <numbers>

namespace brigade::optim {

namespace {

constexpr double kPi = std::numbers::pi;

}  // namespace

CosineAnnealingLR::CosineAnnealingLR(Optimizer& optimizer, int64_t t_max, double eta_min, SourceLocation where)
    : LRScheduler(optimizer), t_max_(t_max), eta_min_(eta_min) {
  detail::check_positive("CosineAnnealingLR", "t_max", t_max, where);
  start(where);
}

std::vector<double> CosineAnnealingLR::next_lr() {
  std::vector<double> rates = current_lr();
  if (is_initial_) return rates;
  const auto period = static_cast<double>(t_max_);
  const auto height = [&](int64_t epoch) { return 1 + std::cos(kPi * static_cast<double>(epoch) / period); };
  // At the bottom the rate is eta_min, and no factor leads up from there.
  const bool leaves_bottom = (last_epoch_ - 1 - t_max_) % (2 * t_max_) == 0;
  const double rise = 1 - std::cos(kPi / period);
  const double ratio = leaves_bottom ? 0 : height(last_epoch_) / height(last_epoch_ - 1);
  for (size_t g = 0; g < rates.size(); ++g) {
    rates[g] =
        leaves_bottom ? rates[g] + (base_lrs_[g] - eta_min_) * rise / 2 : ratio * (rates[g] - eta_min_) + eta_min_;
  }
  return rates;
}

std::vector<double> CosineAnnealingLR::closed_form_lr() {
  const double height = 1 + std::cos(kPi * static_cast<double>(last_epoch_) / static_cast<double>(t_max_));
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
  const double height = 1 + std::cos(kPi * static_cast<double>(elapsed_) / static_cast<double>(period_));
  return from_base([&](double base) { return eta_min_ + (base - eta_min_) * height / 2; });
}

void CosineAnnealingWarmRestarts::visit(const SchedulerVisitor& visitor) {
  LRScheduler::visit(visitor);
  visitor("t_0", t_0_), visitor("t_mult", t_mult_), visitor("eta_min", eta_min_);
  visitor("period", period_), visitor("elapsed", elapsed_);
}

}  // namespace brigade::optim
