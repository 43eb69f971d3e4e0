// Counts local steps up to the first sign of an average: the versions of the parameters tell who writes to them.
#include <brigade/dist/checks/local_steps.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/place.h>
#include <brigade/core/warning.h>
#include <brigade/dist/groups/process_group.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

// As for a Fabric's optimizer without its module: local SGD averages more often.
constexpr uint64_t kLocalStepsForCertain = 1000;
constexpr uint64_t kLocalStepsToTell = 2;  // one step alone may be to see that all works

}  // namespace

bool LocalSteps::is_written() const {
  return std::ranges::any_of(left_, [](const auto& each) {
    return each.second.parameter.version() != each.second.version || was_reduced_by_hand(each.second.parameter);
  });
}

bool LocalSteps::is_averaged_by_hand(const autograd::Update& update) const {
  return std::ranges::any_of(update.parameters, [](const Tensor& parameter) {
    const autograd::AutogradMeta* const known = autograd::meta(parameter);
    return known && known->grad.defined() && (known->stamp.by_hand || was_reduced_by_hand(known->grad));
  });
}

void LocalSteps::end() noexcept {
  is_over_ = true;
  left_.clear();  // they may be gone otherwise
}

void LocalSteps::look_at(const autograd::Update& update) {
  if (is_over_) return;
  if (is_written() || is_averaged_by_hand(update)) return end();
  bool any = false;
  for (const Tensor& parameter : update.parameters) {
    const bool has_gradient = parameter.grad().defined();
    any = any || has_gradient;
    left_.insert_or_assign(parameter.impl(), Left{parameter, parameter.version() + (has_gradient ? 1 : 0)});
  }
  if (!any) return;
  if (++count_ == kLocalStepsToTell) second_ = fmt::format("{}.step() at {}", update.name, to_string(update.where));
  if (count_ == kLocalStepsForCertain) tell();
}

void LocalSteps::tell() {
  if (is_over_ || count_ < kLocalStepsToTell) return;
  const bool for_certain = count_ == kLocalStepsForCertain;  // the step that was counted has not moved anything yet
  if (!for_certain && is_written()) return end();
  end();
  warn({fmt::format("{}: {}: the communication hook {} lets the gradients stay local, and in {} nothing has averaged "
                    "the parameters: each rank trains a model of its own",
                    title_, second_, hook_, for_certain ? fmt::format("{} steps", count_) : "all local steps so far"),
        "average the parameters every so often, after the step: PeriodicModelAverager(group, period)."
        "average_parameters(net), or average_parameters(*group, net->parameters()); or register no such hook"});
}

}  // namespace brigade::dist
