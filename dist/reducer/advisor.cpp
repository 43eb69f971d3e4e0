// Runs each advice on a backward, and keeps its verdicts; their texts are in diagnosis/kinds.
#include <brigade/dist/reducer/advisor.h>

#include <brigade/autograd/detail/stopped_gradients.h>
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
  RoundView(const ReducerSetup& setup, const Buckets& buckets, const Round& round)
      : setup_(setup), buckets_(buckets), round_(round) {}

  Moment moment() const override { return round_.moment(); }
  const Outcome& outcome() const override { return round_.outcome(); }
  std::span<const NamedParameter> parameters() const override { return setup_.parameters; }
  bool find_unused_parameters() const override { return setup_.options.find_unused_parameters; }
  size_t buckets() const override { return buckets_.size(); }
  std::span<const uint32_t> bucket(size_t index) const override {
    return buckets_[static_cast<uint32_t>(index)].layout.parameters;
  }
  int rank() const override { return setup_.group->rank(); }
  int64_t rows() const override { return round_.rows(); }
  std::span<const double> sums_of_squares() const override { return round_.numbers().sums_of_squares; }
  const NonFinite& non_finite() const override { return round_.numbers().non_finite; }
  Moment moment_of_numbers() const override { return round_.numbers().moment; }
  const RoundEvents& events() const override { return round_.events(); }
  std::vector<std::string> exchange(const std::string& mine, const char* about) override {
    return round_.exchange(mine, about);
  }

 private:
  const ReducerSetup& setup_;
  const Buckets& buckets_;
  const Round& round_;
};

}  // namespace

Advisor::Advisor(const ReducerSetup& setup, const Buckets& buckets, const Accumulation& accumulation)
    : setup_(setup), buckets_(buckets), accumulation_(accumulation), advisories_(setup.group->rank()) {}

void Advisor::advise(const Round& round) {
  if (!setup_.options.diagnosis || !round.hook_sends()) return;
  warn_of_emptied(round);
  RoundView backward(setup_, buckets_, round);
  std::exception_ptr failure;
  for (const NamedAdvice& each : setup_.advice) {
    try {
      std::optional<Verdict> verdict = each.advice->examine(backward);
      if (!verdict) continue;
      if (verdict->severity == Severity::Error) {
        throw ValueError("the advice '{}' returned a verdict with the severity of an error; expected Warning or Note",
                         each.name);
      }
      advisories_.add(fmt::format("{} {}", each.name, round.number()), std::move(*verdict));
    } catch (...) {
      // Run the rest too: each advice exchanges on every rank or on none.
      if (!failure) failure = std::current_exception();
    }
  }
  non_finite_in_a_row_ = round.outcome().non_finite > 0 ? non_finite_in_a_row_ + 1 : 0;
  if (failure) std::rethrow_exception(failure);
}

void Advisor::warn_of_emptied(const Round& round) {
  constexpr int kInARow = 3;
  const autograd::detail::StoppedGradients& noticed = autograd::detail::stopped_gradients();
  if (noticed.emptied.empty() || noticed.backward != accumulation_.last_heard()) return;
  for (const autograd::detail::EmptiedGradient& each : noticed.emptied) {
    const auto found = std::ranges::find(setup_.parameters, each.leaf,
                                         [](const NamedParameter& parameter) { return parameter.tensor.id(); });
    if (found == setup_.parameters.end()) continue;
    const auto position = static_cast<uint32_t>(found - setup_.parameters.begin());
    const bool others_have_some = kernels::sum_of_squares(buckets_.slot(position).view) > 0;
    if (round.numbers().sums_of_squares[position] != 0 || !others_have_some) continue;
    Emptied& emptied = emptied_[position];
    if (emptied.latest == round.number()) continue;  // already counted, for another hook
    emptied.in_a_row = emptied.latest + 1 == round.number() ? emptied.in_a_row + 1 : 1;
    emptied.latest = round.number();
    if (emptied.in_a_row != kInARow) continue;
    advisories_.add_own("emptied " + found->name,
                        gradient_emptied(*found, each.hook, setup_.group->rank(), kInARow, round.moment()));
  }
}

void Advisor::warn_of_kept_gradient(uint32_t parameter, SourceLocation backward) {
  // A slot is held by the buckets, and by the parameter as its gradient target. A communication hook may keep handles
  // of its own.
  constexpr int64_t kOwnHandles = 2;
  if (!setup_.options.diagnosis || !setup_.options.gradient_as_bucket_view || setup_.hook || told_of_kept_) return;
  const NamedParameter& named = setup_.parameters[parameter];
  if (autograd::meta(named.tensor)->grad.defined()) return;
  if (static_cast<int64_t>(buckets_.slot(parameter).view.use_count()) <= kOwnHandles) return;
  told_of_kept_ = true;
  tell({fmt::format("{}: the gradient of `{}` that was kept when gradients were cleared is overwritten by the backward "
                    "at {}: it is a view of a bucket",
                    setup_.title(), named.name, to_string(backward)),
        "keep a clone() of it, or wrap with gradient_as_bucket_view = false"});
}

void Advisor::warn_of_early_write(const Round& round, uint32_t parameter) {
  if (!setup_.options.diagnosis || advisories_.has("early write")) return;
  // In its slot, or, without bucket views, in separate memory.
  const Tensor& gradient = autograd::meta(setup_.parameters[parameter].tensor)->grad;
  if (!gradient.defined()) return;  // cleared since
  const uint64_t since = accumulation_.local(parameter).writes_at_accumulation;
  for (const autograd::Write& write : autograd::writes_to(gradient, since)) {
    const std::string op = write.op;
    if (op == "zero_" || op == "fill_") continue;
    advisories_.add_own("early write", edited_before_reduction(op, write.where, setup_.group->rank(),
                                                               setup_.parameters[parameter], round.moment()));
    return;
  }
}

}  // namespace brigade::dist
