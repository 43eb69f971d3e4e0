// Gathers the evidence for advisories, on this rank and from the others; the words are in
// diagnosis/kinds.
#include <brigade/dist/reducer/advisor.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/reducer/accumulation.h>
#include <brigade/dist/reducer/round.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::dist {

void Advisor::add(const std::string& key, Verdict verdict) {
  advisories_.add(key, std::move(verdict), setup_.group->rank() == 0);
}

void Advisor::advise(Round& round) {
  if (!setup_.options.diagnosis || !round.hook_sends()) return;
  const Outcome& outcome = round.outcome();
  if (setup_.options.find_unused_parameters) advise_on_needless_option(round);
  if (outcome.non_finite > 0 && !was_non_finite_) advise_on_non_finite(round);
  was_non_finite_ = outcome.non_finite > 0;
  if (!outcome.late) {
    slow_.add(std::nullopt);
  } else if (!advisories_.has("late") && slow_looks_++ < 64) {
    advise_on_slow_rank(round);
  }
  if (!outcome.outlier) {
    outlier_.end();
  } else if (!advisories_.has("outlier") && outlier_looks_++ < 64) {
    advise_on_outlier(round);
  }
  if (outcome.uneven && !advisories_.has("batches") && batch_looks_++ < 8) advise_on_batches(round);
}

void Advisor::advise_on_needless_option(const Round& round) {
  constexpr uint64_t kBackwards = 10;
  const int participants = setup_.group->size() - round.outcome().joined;
  for (const int users : round.outcome().users)
    some_unused_ = some_unused_ || users != participants;
  if (some_unused_ || round.number() != kBackwards) return;
  size_t bytes = 0;
  for (uint32_t b = 0; b < buckets_.size(); ++b)
    bytes += buckets_[b].layout.parameters.size() * itemsize(buckets_[b].layout.dtype);
  add("nothing unused", nothing_unused(static_cast<int64_t>(bytes), buckets_.size(), round.moment()));
}

void Advisor::advise_on_non_finite(Round& round) {
  NonFinite& seen = round.non_finite();
  // On a device the loss was not looked at before.
  for (const Tensor& loss : seen.device_losses) {
    if (seen.loss || std::isfinite(detail::element_as_double(loss, 0))) continue;
    seen.loss = true;
    seen.blame_loss(round.where());
  }
  std::vector<NonFiniteOnRank> mine;  // one, or none
  if (!seen.parameters.empty() || seen.loss) {
    Cause cause = seen.cause;
    if (!seen.loss) {
      cause = {};
      cause.kind = CauseKind::NonFinite;
      cause.place = round.where();
      cause.text = fmt::format("the loss was finite, and a gradient became infinite or NaN in the backward at {}",
                               to_string(round.where()));
    }
    mine.push_back({setup_.group->rank(), cause, seen.parameters});
  }
  std::vector<NonFiniteOnRank> of_ranks;
  for (const std::string& text : round.exchange(to_text(mine), "non-finite gradients")) {
    for (NonFiniteOnRank& each : decoded<std::vector<NonFiniteOnRank>>(text))
      of_ranks.push_back(std::move(each));
  }
  add(fmt::format("non-finite {}", round.number()), non_finite_gradients(of_ranks, setup_.parameters, round.moment()));
}

void Advisor::advise_on_slow_rank(const Round& round) {
  const RoundEvents& events = round.events();
  ReadyTimes mine;
  for (const int64_t ready : events.ready)
    mine.push_back(ready ? (ready - events.began) / 1000 : int64_t{-1});
  std::vector<ReadyTimes> times;
  for (const std::string& of_rank : round.exchange(to_text(mine), "ready times")) {
    times.push_back(decoded<ReadyTimes>(of_rank));
    if (times.back().size() != setup_.count()) return;
  }
  const std::optional<SlowRank> slow = find_slow_rank(times);
  if (slow_.add(slow)) add("late", slow_rank(*slow, setup_.parameters, round.moment()));
}

// At once where a gradient hook stands on one rank alone; otherwise the same ranks have to stand
// out several times.
void Advisor::advise_on_outlier(const Round& round) {
  std::vector<GradientSize> mine;
  for (size_t i = 0; i < setup_.count(); ++i) {
    const autograd::AutogradMeta& meta = *autograd::meta(setup_.parameters[i].tensor);
    const double sum = round.sums_of_squares()[i];
    mine.push_back({sum > 0 && std::isfinite(sum) ? std::log2(sum) : GradientSize::kNone,
                    meta.hooks.empty() ? Place() : Place(meta.hooks.back().where)});
  }
  std::vector<std::vector<GradientSize>> by_rank;
  for (const std::string& of_rank : round.exchange(to_text(mine), "sizes of gradients")) {
    by_rank.push_back(decoded<std::vector<GradientSize>>(of_rank));
    if (by_rank.back().size() != setup_.count()) return;
  }
  const Outlier found = find_outlier(by_rank);
  const bool is_long = outlier_.add(found);
  if (found.parameters.empty() || (!found.hooks_differ && !is_long)) return;
  add("outlier", gradient_outlier(found, OutlierStreak::kBackwards, setup_.parameters, round.moment()));
}

void Advisor::advise_on_batches(const Round& round) {
  std::vector<int64_t> rows;
  for (const std::string& of_rank : round.exchange(to_text(round.rows()), "batch sizes"))
    rows.push_back(decoded<int64_t>(of_rank));
  if (std::optional<Verdict> verdict = uneven_batches(rows, round.moment())) add("batches", std::move(*verdict));
}

void Advisor::warn_of_early_write(const Round& round, uint32_t parameter) {
  if (!setup_.options.diagnosis || advisories_.has("early write")) return;
  const uint64_t since = accumulation_.local(parameter).writes_at_accumulation;
  for (const autograd::Write& write : autograd::writes_to(buckets_.slot(parameter).view, since)) {
    const std::string op = write.op;
    if (op == "zero_" || op == "fill_") continue;
    add("early write",
        edited_before_reduction(op, write.where, setup_.group->rank(), setup_.parameters[parameter], round.moment()));
    return;
  }
}

}  // namespace brigade::dist
