// Runs each advice on a backward, and keeps its verdicts; their texts are in diagnosis/kinds.
#include <brigade/dist/observers/advisor.h>

#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/warning.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/reducer/accumulation.h>
#include <brigade/dist/reducer/round.h>
#include <brigade/kernels/bucket.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

namespace brigade::dist {
namespace {

// Presents a round to advice.
class RoundView final : public FinishedBackward {
 public:
  RoundView(const Round& round, const NormMeter& meter, const RoundEvents& events)
      : round_(round), meter_(meter), events_(events) {}

  Moment moment() const override { return round_.moment(); }
  const Outcome& outcome() const override { return round_.outcome(); }
  const Measured& measured() const override { return meter_.measured(); }
  std::span<const NamedParameter> parameters() const override { return round_.setup().parameters; }
  bool find_unused_parameters() const override { return round_.setup().options.find_unused_parameters; }
  size_t buckets() const override { return round_.buckets().size(); }
  std::span<const uint32_t> bucket(size_t index) const override {
    return round_.buckets()[static_cast<uint32_t>(index)].layout.parameters;
  }
  int rank() const override { return round_.setup().group->rank(); }
  int64_t rows() const override { return round_.start().rows; }
  std::span<const double> sums_of_squares() const override { return meter_.numbers().sums_of_squares; }
  const NonFinite& non_finite() const override { return meter_.numbers().non_finite; }
  Moment moment_of_numbers() const override { return meter_.numbers().moment; }
  const RoundEvents& events() const override { return events_; }
  std::vector<std::string> exchange(const std::string& mine, const char* about) override {
    return round_.exchange(mine, about);
  }

 private:
  const Round& round_;
  const NormMeter& meter_;
  const RoundEvents& events_;
};

// The largest number of backwards that any gradient has accumulated under no_sync and still holds, that is, was not
// cleared.
int64_t most_gathered(const Round& round) {
  int64_t most = 0;
  for (uint32_t i = 0; i < round.setup().count(); ++i) {
    if (!round.accumulation().used(i)) continue;
    const autograd::AutogradMeta* const known = autograd::meta(round.setup().parameters[i].tensor);
    // The stamp of a gradient that was filled with zeros counts no backwards.
    if (known && known->grad.defined() && (known->stamp.backwards > 0 || known->stamp.by_hand))
      most = std::max<int64_t>(most, round.accumulation().local(i).backwards);
  }
  return most;
}

// The largest number of backwards, averaged or not, that any gradient holds and no step has used, with the latest of
// them.
KeptBackwards most_held(const Round& round) {
  KeptBackwards most;
  for (const NamedParameter& each : round.setup().parameters) {
    const autograd::AutogradMeta* const known = autograd::meta(each.tensor);
    if (!known || !known->grad.defined()) continue;
    const autograd::GradStamp& stamp = known->stamp;
    const int64_t held = stamp.backwards - std::min(stamp.backwards, stamp.backwards_used);
    if (held > most.count) most = {held, stamp.last_backward_at};
  }
  return most;
}

StartedBackward started_of(const Round& round, const autograd::Plan* plan) {
  StartedBackward backward{.number = round.number(), .plan = plan, .rows = round.start().rows};
  backward.gathered = most_gathered(round);
  const KeptBackwards held = most_held(round);
  backward.adds = held.count > 0;
  // Otherwise the ranks may use different parameters.
  if (!round.setup().options.find_unused_parameters) {
    backward.kept = held;
    backward.kept.count = std::max<int64_t>(backward.kept.count - backward.gathered, 0);
    backward.gathered += backward.kept.count;
  }
  if (!round.start().absent) ++backward.gathered;
  return backward;
}

}  // namespace

Advisor::Advisor(std::shared_ptr<WrapperLog> log, std::shared_ptr<const NormMeter> meter,
                 std::shared_ptr<const Recorder> recorder)
    : log_(std::move(log)),
      meter_(std::move(meter)),
      recorder_(std::move(recorder)),
      advice_(make_all_advice()),
      statistics_(statistics_of(advice_)) {}

void Advisor::on_begin(const Round& round, const autograd::Plan* plan) {
  StartedBackward started = started_of(round, plan);
  started.loss = core_of(plan);
  started.forwards = &log_->forwards;
  for (Statistic* const each : statistics_)
    each->begin(started);
  log_->forwards.clear();
  if (!round.setup().options.gradient_as_bucket_view || round.setup().hook) return;
  for (uint32_t i = 0; i < round.setup().parameters.size() && !told_of_kept_; ++i)
    warn_of_kept_gradient(round, i);
}

void Advisor::on_finish(const Round& round) {
  if (!round.traffic().is_sent) return;
  warn_of_emptied(round);
  RoundView backward(round, *meter_, recorder_->events());
  std::exception_ptr failure;
  for (const NamedAdvice& each : advice_) {
    try {
      std::optional<Verdict> verdict = each.advice->examine(backward);
      if (!verdict) continue;
      if (verdict->severity == Severity::Error) {
        throw ValueError("the advice '{}' returned a verdict with the severity of an error; expected Warning or Note",
                         each.name);
      }
      log_->advisories.add(fmt::format("{} {}", each.name, round.number()), std::move(*verdict));
    } catch (...) {
      // Run the rest too: each advice exchanges on every rank or on none.
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

void Advisor::warn_of_emptied(const Round& round) {
  constexpr int kInARow = 3;
  const autograd::detail::StoppedGradients& noticed = autograd::detail::stopped_gradients();
  if (noticed.emptied.empty() || noticed.backward != round.accumulation().last_heard()) return;
  for (const autograd::detail::EmptiedGradient& each : noticed.emptied) {
    const auto found = std::ranges::find(round.setup().parameters, each.leaf,
                                         [](const NamedParameter& parameter) { return parameter.tensor.id(); });
    if (found == round.setup().parameters.end()) continue;
    const auto position = static_cast<uint32_t>(found - round.setup().parameters.begin());
    const bool others_have_some = kernels::sum_of_squares(round.buckets().slot(position).view) > 0;
    if (meter_->numbers().sums_of_squares[position] != 0 || !others_have_some) continue;
    Emptied& emptied = emptied_[position];
    if (emptied.latest == round.number()) continue;  // already counted, for another hook
    emptied.in_a_row = emptied.latest + 1 == round.number() ? emptied.in_a_row + 1 : 1;
    emptied.latest = round.number();
    if (emptied.in_a_row != kInARow) continue;
    log_->advisories.add_own("emptied " + found->name,
                             gradient_emptied(*found, each.hook, round.setup().group->rank(), kInARow, round.moment()));
  }
}

void Advisor::warn_of_kept_gradient(const Round& round, uint32_t parameter) {
  // A slot is held by the buckets, and by the parameter as its gradient target. A communication hook may keep handles
  // of its own.
  constexpr int64_t kOwnHandles = 2;
  const NamedParameter& named = round.setup().parameters[parameter];
  if (autograd::meta(named.tensor)->grad.defined()) return;
  if (static_cast<int64_t>(round.buckets().slot(parameter).view.use_count()) <= kOwnHandles) return;
  told_of_kept_ = true;
  tell({fmt::format(
            "Overwritten: the kept gradient of `{}` of {}, by the backward at {}.\nwhy: it is a view of a bucket, "
            "and was kept when gradients were cleared.",
            named.name, in_words(round.setup().options.owner), to_string(round.where())),
        "keep a clone() of it, or wrap with gradient_as_bucket_view = false"});
}

void Advisor::on_accumulated(const Round& round, uint32_t parameter) {
  if (log_->advisories.has("early write")) return;
  // In its slot, or, without bucket views, in separate memory.
  const NamedParameter& named = round.setup().parameters[parameter];
  const autograd::AutogradMeta& meta = *autograd::meta(named.tensor);
  const Tensor& gradient = meta.grad;
  const bool is_new = meta.stamp.backwards == 1 && meta.stamp.last_backward == round.accumulation().last_heard();
  if (!gradient.defined() || is_new) return;  // cleared since
  const uint64_t since = round.accumulation().local(parameter).writes_at_accumulation;
  for (const autograd::Write& write : autograd::writes_to(gradient, since)) {
    const std::string op = write.op;
    if (op == "zero_" || op == "fill_") continue;
    log_->advisories.add_own(
        "early write", edited_before_reduction(op, write.where, round.setup().group->rank(), named, round.moment()));
    return;
  }
}

}  // namespace brigade::dist
