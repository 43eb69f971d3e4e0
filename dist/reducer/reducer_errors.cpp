// Ends a backward that is an error: what this rank's exception, the flags of the ranks, or a collective that failed mean.
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/reducer/launch_order.h>
#include <brigade/dist/reducer/reducer.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {

void Reducer::on_error(const autograd::Plan* plan, std::exception_ptr error) noexcept {
  std::string failure = "unknown error";
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    failure = exception.what();
  } catch (...) {
  }
  accumulation_.gather(false);
  try {
    if (broken_) {
      end_round();
      return;
    }
    if (!round_) return;
    LaunchOrder::of_this_thread().fail();
    round_->fail();
    if (round_->start().held) setup_.join->before_round(round_->where());
    round_->finish();
    if (!round_->is_error()) return conclude();
    const auto backward = plan ? std::optional<TracedBackward>(*plan) : std::nullopt;
    report(backward ? &*backward : nullptr, failure);
  } catch (const ReductionError&) {
    // Backward rethrows its own error, which says more.
  } catch (...) {
    give_up();
  }
}

// Without observers.
std::exception_ptr Reducer::plain_error() const {
  const Outcome& outcome = round_->outcome();
  const char* const what = outcome.failed > 0    ? "the backward of a rank has failed"
                           : !outcome.same_round ? "the ranks are in different backwards"
                           : outcome.changed > 0 ? "a rank uses other parameters than in the first backward"
                           : outcome.rejected    ? "an observer does not trust the gradients"
                                                 : "some parameters were not ready on every rank";
  return std::make_exception_ptr(ReductionError(
      fmt::format("{}: {} in backward {}", setup_.title(), what, round_->number()), {}, round_->where()));
}

void Reducer::report(const TracedBackward* backward, const std::string& failure) {
  std::exception_ptr error;
  try {
    setup_.notify([&](ReducerObserver& each) {
      if (!error) error = each.on_error(*round_, backward, failure);
    });
  } catch (const DistError&) {
    error = broken_ = std::current_exception();
    setup_.notify([](ReducerObserver& each) { each.on_group_error(); });
  }
  if (!error) error = plain_error();
  const Outcome& outcome = round_->outcome();
  const bool is_mean = outcome.failed == 0 && outcome.same_round && !outcome.rejected;
  const bool waits = setup_.options.report_at == ReducerOptions::ReportAt::NextForward && is_mean && !broken_;
  remember(false);
  if (waits) {
    settle();
    keep_back(error);
  }
  if (!broken_) tell_follower_of_end(waits);
  end_round();
  if (waits) return;
  clear_gradients();
  std::rethrow_exception(error);
}

void Reducer::keep_back(std::exception_ptr error) {
  const Outcome& outcome = round_->outcome();
  const int participants = setup_.group->size() - outcome.joined;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    setup_.covered[i] = outcome.changed == 0 && (setup_.covered[i] || outcome.users[i] == participants);
    setup_.reached[i] = setup_.reached[i] || round_->uses(i);
  }
  kept_back_ = std::move(error);
}

std::exception_ptr Reducer::take_kept_back() noexcept {
  std::fill(setup_.covered.begin(), setup_.covered.end(), uint8_t{0});
  std::fill(setup_.reached.begin(), setup_.reached.end(), uint8_t{0});
  return std::exchange(kept_back_, nullptr);
}

void Reducer::give_up() noexcept {
  broken_ = std::current_exception();
  setup_.notify([](ReducerObserver& each) { each.on_group_error(); });
  if (setup_.follower.broken) setup_.follower.broken();
  end_round();
  clear_gradients();
}

}  // namespace brigade::dist
