// What the reducer advises: warnings and notes that do not stop training.
#include <brigade/dist/reducer/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/diagnosis/fields.h>
#include <brigade/dist/diagnosis/report.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace brigade::dist {

// At the line of the backward that has just been reduced.
Verdict Reducer::new_advice(const char* kind, Severity severity, CauseKind cause) const {
  Verdict verdict;
  verdict.kind = kind;
  verdict.severity = severity;
  verdict.iteration = round_;
  verdict.cause.kind = cause;
  set_place(verdict.cause, backward_where_);
  return verdict;
}

ParameterVerdict Reducer::about(uint32_t parameter, std::vector<int> ready, std::vector<int> not_ready) const {
  const NamedParameter& named = parameters_[parameter];
  return {named.name, static_cast<int64_t>(named.tensor.nbytes()), std::move(ready), std::move(not_ready)};
}

void Reducer::advise() {
  if (!options_.diagnosis || !hook_sends_) return;
  if (options_.find_unused_parameters) advise_on_needless_option();
  if (outcome_.non_finite > 0) {
    if (!non_finite_before_) advise_on_non_finite();
    non_finite_before_ = true;
  } else {
    non_finite_before_ = false;
  }
  // Who it is takes an exchange: a few times only, where the machine is uneven by itself.
  if (!outcome_.late) {
    slow_streak_.add(std::nullopt);
  } else if (!advisories_.has("late") && slow_looks_++ < 64) {
    advise_on_slow_rank();
  }
  if (!outcome_.outlier) {
    outlier_rounds_ = 0;
  } else if (!advisories_.has("outlier") && outlier_looks_++ < 64) {
    advise_on_outlier();
  }
  if (outcome_.uneven && !advisories_.has("batches") && batch_looks_++ < 8) advise_on_batches();
}

void Reducer::advise_on_needless_option() {
  const int participants = group_->size() - outcome_.joined;
  for (const int users : outcome_.users)
    some_unused_ = some_unused_ || users != participants;
  if (some_unused_ || round_ != 10) return;
  Verdict verdict = new_advice("nothing_unused", Severity::Note, CauseKind::Wasteful);
  for (int r = 0; r < group_->size(); ++r)
    verdict.ranks.push_back(r);
  size_t bytes = 0;
  for (const Bucket& bucket : buckets_)
    bytes += bucket.layout.parameters.size() * itemsize(bucket.layout.dtype);
  verdict.cause.text = fmt::format(
      "find_unused_parameters is on, and every parameter was used in the first {} backwards. It costs no collective "
      "and no walk here: {} of flags in {} buckets, which strict mode sends as well",
      round_, bytes_in_words(static_cast<int64_t>(bytes)), buckets_.size());
  verdict.message = verdict.cause.text;
  verdict.advice = "leave it out to be told when a parameter is forgotten";
  advisories_.add("nothing unused", std::move(verdict), false);
}

void Reducer::advise_on_non_finite() {
  // On a device the loss was not looked at before.
  for (const Tensor& loss : device_losses_) {
    if (non_finite_loss_ || std::isfinite(detail::element_as_double(loss, 0))) continue;
    non_finite_loss_ = true;
    blame_loss(backward_where_);
  }
  std::string mine;
  if (!non_finite_.empty() || non_finite_loss_) {
    Cause cause = non_finite_cause_;
    if (!non_finite_loss_) {
      cause = {};
      cause.kind = CauseKind::NonFinite;
      set_place(cause, backward_where_);
      cause.text = fmt::format("the loss was finite, and a gradient became infinite or NaN in the backward at {}",
                               to_string(backward_where_));
    }
    FieldWriter out;
    out << encode(cause);
    for (const uint32_t parameter : non_finite_)
      out << int64_t{parameter};
    mine = out.text();
  }
  Verdict verdict = new_advice("non_finite_gradients", Severity::Warning, CauseKind::NonFinite);
  verdict.advice =
      "mend the operation that is named; a zero weight does not help, since 0 * inf is NaN. Skip the step on every "
      "rank alike, or use a gradient scaler with float16";
  std::map<uint32_t, std::vector<int>> where;
  const std::vector<std::string> all = exchange(mine, "non-finite gradients");
  for (int r = 0; r < group_->size(); ++r) {
    const std::string& text = all[static_cast<size_t>(r)];
    if (text.empty()) continue;
    verdict.ranks.push_back(r);
    FieldReader in(text);
    const std::string cause = in.next();
    if (verdict.cause.text.empty()) verdict.cause = decode_cause(cause);
    while (!in.done())
      where[static_cast<uint32_t>(in.number())].push_back(r);
  }
  std::string names;
  for (const auto& [parameter, ranks] : where) {
    verdict.parameters.push_back(about(parameter, {}, ranks));
    if (verdict.parameters.size() <= 4) names += (names.empty() ? "" : ", ") + parameters_[parameter].name;
  }
  if (verdict.parameters.size() > 4) names += fmt::format(" and {} more", verdict.parameters.size() - 4);
  verdict.message = fmt::format(
      "gradients of {} are infinite or NaN on {} before the reduction in backward {}, and so on "
      "every rank after it: {}",
      names.empty() ? "no single parameter" : names, ranks_in_words(verdict.ranks), round_, verdict.cause.text);
  advisories_.add(fmt::format("non-finite {}", round_), std::move(verdict), group_->rank() == 0);
}

void Reducer::advise_on_slow_rank() {
  FieldWriter mine;
  for (uint32_t i = 0; i < parameters_.size(); ++i)
    mine << (events_.ready[i] ? (events_.ready[i] - events_.began) / 1000 : int64_t{-1});
  std::vector<ReadyTimes> times;
  for (const std::string& text : exchange(mine.text(), "ready times")) {
    ReadyTimes& of_rank = times.emplace_back();
    for (FieldReader in(text); !in.done();)
      of_rank.push_back(in.number());
    if (of_rank.size() != parameters_.size()) return;
  }
  const std::optional<SlowRank> slow = find_slow_rank(times);
  if (!slow_streak_.add(slow)) return;
  Verdict verdict = new_advice("slow_rank", Severity::Warning, CauseKind::Slow);
  verdict.ranks = {slow->rank};
  verdict.parameters.push_back(about(slow->parameter, {}, verdict.ranks));
  verdict.cause.text = fmt::format(
      "in {} backwards in a row rank {} was late: its last gradient came after {:.1f} ms, {:.1f} ms on the others; "
      "the first that is late is {}",
      SlowRankStreak::kBackwards, slow->rank, static_cast<double>(slow->last_us) * 1e-3,
      static_cast<double>(slow->others_us) * 1e-3, parameters_[slow->parameter].name);
  verdict.message = verdict.cause.text + "; every rank waits for it";
  verdict.advice = "look at what that rank does before this parameter: a hook, a larger batch, a slower or busier core";
  advisories_.add("late", std::move(verdict), group_->rank() == 0);
}

// At once where a gradient hook stands on one rank alone. Size by itself varies in a sound training too (a batch that
// one rank has learnt by heart): the same rank has to stand out several times in a row.
void Reducer::advise_on_outlier() {
  // Per rank and parameter: log2 of the sum of squares, and the line of a gradient hook.
  FieldWriter mine;
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const autograd::AutogradMeta& meta = *autograd::meta(parameters_[i].tensor);
    mine << fmt::format("{:.4g}", own_sums_[i] > 0 ? std::log2(own_sums_[i]) : -999.0);
    mine << (meta.hooks.empty() ? std::string() : to_string(meta.hooks.back().where));
  }
  const std::vector<std::string> all = exchange(mine.text(), "sizes of gradients");
  struct Entry {
    double size;
    std::string hook;
  };
  std::vector<std::vector<Entry>> entries(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    for (FieldReader in(all[r]); !in.done();) {
      const double size = std::atof(in.next().c_str());
      entries[r].push_back({size, in.next()});
    }
    if (entries[r].size() != parameters_.size()) return;
  }
  // What is only rounding noise on some rank says nothing: 2^-33 of all of its gradients.
  std::vector<double> noise;
  for (const std::vector<Entry>& of_rank : entries) {
    double all_sizes = 0;
    for (const Entry& entry : of_rank)
      all_sizes += std::exp2(entry.size);
    noise.push_back(std::log2(all_sizes) - 33);
  }
  const auto is_noise = [&](uint32_t parameter) {
    for (size_t r = 0; r < entries.size(); ++r) {
      if (entries[r][parameter].size > -900 && entries[r][parameter].size < noise[r]) return true;
    }
    return false;
  };
  Verdict verdict = new_advice("gradient_outlier", Severity::Warning, CauseKind::NormOutlier);
  double largest = 0;
  std::string hook;
  bool hooks_differ = false;
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    std::vector<std::pair<double, int>> sizes;
    for (size_t r = 0; r < entries.size(); ++r) {
      if (entries[r][i].size > -900) sizes.emplace_back(entries[r][i].size, static_cast<int>(r));
    }
    if (sizes.size() < 2 || is_noise(i)) continue;
    std::sort(sizes.begin(), sizes.end());
    // The rank farthest from the middle; with two ranks the larger one.
    const double middle = sizes.size() == 2 ? sizes.front().first : sizes[sizes.size() / 2].first;
    const auto& far =
        std::abs(sizes.front().first - middle) > std::abs(sizes.back().first - middle) ? sizes.front() : sizes.back();
    const double distance = std::abs(far.first - middle);
    if (distance < 9) continue;
    std::vector<int> ready;
    for (const auto& [size, rank] : sizes) {
      if (rank != far.second) ready.push_back(rank);
    }
    std::sort(ready.begin(), ready.end());
    verdict.parameters.push_back(about(i, ready, {far.second}));
    if (std::find(verdict.ranks.begin(), verdict.ranks.end(), far.second) == verdict.ranks.end())
      verdict.ranks.push_back(far.second);
    if (distance > largest) {
      largest = distance;
      hook = entries[static_cast<size_t>(far.second)][i].hook;
      hooks_differ = std::any_of(sizes.begin(), sizes.end(), [&](const auto& size_and_rank) {
        return entries[static_cast<size_t>(size_and_rank.second)][i].hook != hook;
      });
    }
  }
  constexpr int kRounds = 6;
  outlier_rounds_ = verdict.ranks == outlier_ranks_ ? outlier_rounds_ + 1 : 1;
  outlier_ranks_ = verdict.ranks;
  if (verdict.parameters.empty() || (!hooks_differ && outlier_rounds_ < kRounds)) return;
  std::string names;
  for (const ParameterVerdict& parameter : verdict.parameters)
    names += (names.empty() ? "" : ", ") + parameter.name;
  verdict.cause.text =
      fmt::format("before the reduction in backward {}{} the gradient of {} on {} is {:.3g} times that of the others",
                  round_, hooks_differ ? "" : fmt::format(" as in the {} before", kRounds - 1), names,
                  ranks_in_words(verdict.ranks), std::exp2(largest / 2));
  verdict.advice =
      "look for a loss that is summed instead of averaged, other data, or another learning-rate scale there";
  if (hooks_differ && !hook.empty()) {
    verdict.cause.kind = CauseKind::HookDiffers;
    verdict.cause.text += "; a gradient hook is registered there at " + hook;
    const size_t colon = hook.rfind(':');
    verdict.cause.file = hook.substr(0, colon);
    verdict.cause.line = static_cast<uint32_t>(std::strtoul(hook.c_str() + colon + 1, nullptr, 10));
    verdict.advice = "register the same gradient hooks on every rank, or none";
  }
  verdict.message = verdict.cause.text;
  advisories_.add("outlier", std::move(verdict), group_->rank() == 0);
}

void Reducer::advise_on_batches() {
  const std::vector<std::string> all = exchange(std::to_string(rows_), "batch sizes");
  if (std::all_of(all.begin(), all.end(), [&](const std::string& rows) { return rows == all.front(); })) return;
  Verdict verdict = new_advice("uneven_batches", Severity::Warning, CauseKind::UnevenBatches);
  double total = 0;
  for (const std::string& rows : all)
    total += std::atof(rows.c_str());
  std::string list;
  for (size_t r = 0; r < all.size(); ++r) {
    verdict.ranks.push_back(static_cast<int>(r));
    const double rows = std::atof(all[r].c_str());
    list += fmt::format("{}rank {}: {} samples (each counts {:.3g} times its share)", r > 0 ? ", " : "", r, all[r],
                        rows > 0 ? total / static_cast<double>(all.size()) / rows : 0.0);
  }
  verdict.cause.text =
      fmt::format("the ranks average their gradients over batches of different sizes in backward {}: {}", round_, list);
  verdict.message = verdict.cause.text + "; where each rank's loss is a mean, the mean of means is not the mean of all";
  verdict.advice =
      "give every rank the same number of samples (DistributedSampler), or scale each rank's loss by its samples x "
      "ranks / all samples";
  advisories_.add("batches", std::move(verdict), group_->rank() == 0);
}

void Reducer::warn_of_early_write(uint32_t parameter) {
  if (!options_.diagnosis || advisories_.has("early write")) return;
  const LocalGradient& local = local_[parameter];
  for (const autograd::Write& write : autograd::writes_to(slots_[parameter].view, local.writes_at_accumulation)) {
    const std::string op = write.op;
    if (op == "zero_" || op == "fill_") continue;
    Verdict verdict = new_advice("edited_before_reduction", Severity::Warning, CauseKind::EditedByHand);
    verdict.ranks = {group_->rank()};
    verdict.parameters.push_back(about(parameter, {}, verdict.ranks));
    verdict.cause.op = op;
    set_place(verdict.cause, write.where);
    verdict.cause.text = fmt::format(
        "{} at {} changed the gradient of {} on rank {} while it was still local: each rank "
        "does so by its own numbers, before the mean is taken",
        op, to_string(write.where), parameters_[parameter].name, group_->rank());
    verdict.message = verdict.cause.text;
    verdict.advice =
        "clip, scale or mask gradients after the reduction: after the backward outside no_sync, before step()";
    advisories_.add("early write", std::move(verdict), group_->rank() == 0);
    return;
  }
}

}  // namespace brigade::dist
