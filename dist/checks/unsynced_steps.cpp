// Thresholds for the warning about unsynchronized optimizer steps, and signs of averaging: versions of parameters.
#include <brigade/dist/checks/unsynced_steps.h>

#include <brigade/autograd/meta.h>
#include <brigade/core/place.h>
#include <brigade/core/warning.h>
#include <brigade/dist/groups/own_collectives.h>
#include <brigade/dist/groups/process_group.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

// --- Thresholds for the warning about unsynchronized optimizer steps, and the step that the warning names.

namespace {

constexpr uint64_t kMany = 1000;  // local SGD averages more often
constexpr uint64_t kEnough = 2;   // a single step may be a smoke test

}  // namespace

void UnsyncedSteps::end() noexcept {
  is_over_ = true;
  left_.clear();
}

bool UnsyncedSteps::add(const std::string& optimizer, SourceLocation where) {
  if (++count_ == kEnough) second_ = fmt::format("{}.step() at {}", optimizer, to_string(Place(where)));
  return are_many();
}

bool UnsyncedSteps::are_many() const noexcept { return count_ == kMany; }

bool UnsyncedSteps::are_enough() const noexcept { return !is_over_ && count_ >= kEnough; }

std::string UnsyncedSteps::how_many(const std::string& all) const {
  return are_many() ? fmt::format("{} steps", count_) : all;
}

// --- Looks for signs of averaging: parameter versions show whether anything but the optimizer has written to them.

bool LocalSteps::is_written() const {
  return steps_.any_left([](const Tensor& parameter, uint32_t version) {
    return parameter.version() != version || was_reduced_by_hand(parameter);
  });
}

bool LocalSteps::is_averaged_by_hand(const autograd::Update& update) const {
  return std::ranges::any_of(update.parameters, [](const Tensor& parameter) {
    const autograd::AutogradMeta* const known = autograd::meta(parameter);
    return known && known->grad.defined() && (known->stamp.by_hand || was_reduced_by_hand(known->grad));
  });
}

void LocalSteps::look_at(const autograd::Update& update) {
  if (steps_.is_over()) return;
  if (is_written() || is_averaged_by_hand(update)) return steps_.end();
  bool any = false;
  for (const Tensor& parameter : update.parameters) {
    const bool has_gradient = parameter.grad().defined();
    any = any || has_gradient;
    steps_.leave(parameter, parameter.version() + (has_gradient ? 1 : 0));
  }
  if (any && steps_.add(update.name, update.where)) tell();
}

void LocalSteps::tell() {
  if (!steps_.are_enough()) return;
  // When are_many(), the step that was counted last has not moved any parameter yet.
  if (!steps_.are_many() && is_written()) return steps_.end();
  steps_.end();
  warn(
      {fmt::format(
           "Each rank trains a model of its own: {}, since {}.\nwhy: the communication hook {} lets the gradients stay "
           "local, and in {} nothing has averaged the parameters.",
           title_, steps_.second(), hook_, steps_.how_many("all local steps so far")),
       "average the parameters every so often, after the step (PeriodicModelAverager, average_parameters()), or register no "
       "such hook"});
}

}  // namespace brigade::dist
