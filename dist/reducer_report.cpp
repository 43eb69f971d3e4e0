// What the reducer says: the common error of all ranks, and advisories that do not stop training. Only here anything
// more than the payload is exchanged; all ranks come here together, since all have read the same words.
#include <brigade/dist/reducer.h>

#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

namespace brigade::dist {

namespace {

constexpr char kField = '\x1f';

std::vector<std::string> fields_of(const std::string& text) {
  std::vector<std::string> fields(1);
  for (const char c : text) {
    if (c == kField) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

std::vector<std::string> Reducer::exchange(const std::string& text, const char* about) {
  return group_->all_gather_text(text, fmt::format("{} of DDP({})", about, options_.module_name), backward_where_);
}

RankReport Reducer::own_report(const autograd::Plan* plan, const std::string& failure) const {
  RankReport mine;
  mine.rank = group_->rank();
  mine.round = round_;
  mine.backward = to_string(backward_where_);
  mine.failure = failure;
  mine.recorded.assign(recorded_.begin(), recorded_.end());
  mine.recorded_at = recorded_at_;
  const bool reached = std::any_of(planned_.begin(), planned_.end(), [](uint8_t planned) { return planned != 0; });
  std::vector<NamedParameter> current;
  if (options_.current_parameters) current = options_.current_parameters();
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    // In an accumulation a parameter counts as ready if any of its backwards used it.
    const bool ready = planned_[i] || used_[i] || joined_;
    mine.ready.push_back(ready);
    if (ready || !plan || !failure.empty()) continue;
    const auto successor = std::find_if(current.begin(), current.end(), [&](const NamedParameter& each) {
      return each.name == parameters_[i].name && !each.tensor.is_same(parameters_[i].tensor);
    });
    if (successor == current.end()) {
      mine.causes.emplace(i, find_cause(parameters_[i].name, parameters_[i].tensor, *plan, reached));
      continue;
    }
    Cause cause;
    cause.kind = CauseKind::Replaced;
    const size_t dot = parameters_[i].name.rfind('.');
    cause.module = dot == std::string::npos ? "" : parameters_[i].name.substr(0, dot);
    const autograd::AutogradMeta* known = autograd::meta(successor->tensor);
    cause.text = fmt::format("`{}` exists twice: the wrapper holds the object that was there when it was made",
                             parameters_[i].name);
    if (known && known->registered_at.line() != 0) {
      set_place(cause, known->registered_at);
      cause.text += ", the module holds one registered at " + to_string(known->registered_at);
    }
    mine.causes.emplace(i, std::move(cause));
  }
  return mine;
}

void Reducer::report(const autograd::Plan* plan, const std::string& failure) {
  std::exception_ptr error;
  try {
    if (!outcome_.hooks.empty() && outcome_.failed == 0) {
      std::string message =
          "the communication hook does not give the mean of the ranks' gradients. The gradients of this "
          "backward were cleared on every rank.\n";
      for (const Verdict& verdict : outcome_.hooks)
        message += "\n  " + verdict.message;
      error = std::make_exception_ptr(ReductionError(message, outcome_.hooks, backward_where_));
    } else {
      std::vector<RankReport> reports;
      for (const std::string& text : exchange(encode(own_report(plan, failure)), "error report"))
        reports.push_back(decode_report(text));
      ErrorContext context;
      context.find_unused_parameters = options_.find_unused_parameters;
      context.failed = outcome_.failed > 0;
      context.same_round = outcome_.same_round;
      context.changed = outcome_.changed > 0;
      context.expected = expected_;
      for (const Slot& slot : slots_)
        context.buckets.push_back(slot.bucket);
      context.where = backward_where_;
      error = std::make_exception_ptr(compose_error(reports, parameters_, context));
    }
  } catch (const DistError&) {
    broken_ = true;
    error = std::current_exception();
  }
  raise(error);
}

void Reducer::raise(std::exception_ptr error) {
  if (options_.report_at == ReducerOptions::ReportAt::NextForward && outcome_.failed == 0 && !broken_) {
    settle_all();
    reset();
    kept_back_ = error;
    return;
  }
  reset();
  clear_gradients();
  std::rethrow_exception(error);
}

void Reducer::look_at_loss(const autograd::Plan& plan) {
  const auto roots = plan.roots();
  non_finite_loss_ = std::any_of(roots.begin(), roots.end(), [](const Tensor& root) {
    return root.numel() == 1 && !std::isfinite(detail::element_as_double(root, 0));
  });
  if (!non_finite_loss_) return;
  non_finite_cause_ = {};
  non_finite_cause_.kind = CauseKind::NonFinite;
  set_place(non_finite_cause_, plan.where());
  non_finite_cause_.text = fmt::format("the loss of the backward at {} is not finite", to_string(plan.where()));
}

void Reducer::on_non_finite(const char* op, SourceLocation where) {
  non_finite_cause_.op = op;
  set_place(non_finite_cause_, where);
  non_finite_cause_.text +=
      fmt::format("; the first operation whose derivative is not finite is {} at {}", op, to_string(where));
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
  late_rounds_ = outcome_.late ? late_rounds_ + 1 : 0;
  if (late_rounds_ == 4 && !advisories_.has("late")) advise_on_late_rank();
  if (!outcome_.outlier) {
    outlier_rounds_ = 0;
  } else if (!advisories_.has("outlier") && outlier_looks_++ < 64) {
    advise_on_outlier();
  }
  if (outcome_.uneven && !advisories_.has("batches")) advise_on_batches();
}

void Reducer::advise_on_needless_option() {
  const int participants = group_->size() - outcome_.joined;
  for (const int users : outcome_.users)
    some_unused_ = some_unused_ || users != participants;
  if (some_unused_ || round_ != 10) return;
  Verdict verdict;
  verdict.kind = "nothing_unused";
  verdict.severity = Severity::Note;
  verdict.iteration = round_;
  verdict.cause.kind = CauseKind::Wasteful;
  set_place(verdict.cause, backward_where_);
  for (int r = 0; r < group_->size(); ++r)
    verdict.ranks.push_back(r);
  size_t bytes = 0;
  for (const Bucket& bucket : buckets_)
    bytes += bucket.layout.parameters.size() * itemsize(bucket.layout.dtype);
  verdict.cause.text = fmt::format(
      "find_unused_parameters is on, and every parameter was used in the first {} backwards. It costs no collective "
      "and "
      "no walk here: {} of flags in {} buckets, which strict mode sends as well",
      round_, bytes_in_words(static_cast<int64_t>(bytes)), buckets_.size());
  verdict.message = verdict.cause.text;
  verdict.advice = "leave it out to be told when a parameter is forgotten";
  advisories_.add("nothing unused", std::move(verdict), false);
}

void Reducer::advise_on_non_finite() {
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
    mine = encode(cause);
    mine += '\n';
    for (const uint32_t parameter : non_finite_)
      mine += std::to_string(parameter) + " ";
  }
  Verdict verdict;
  verdict.kind = "non_finite_gradients";
  verdict.severity = Severity::Warning;
  verdict.iteration = round_;
  verdict.advice =
      "mend the operation that is named; a zero weight does not help, since 0 * inf is NaN. Skip the step on every "
      "rank "
      "alike, or use a gradient scaler with float16";
  std::map<uint32_t, std::vector<int>> where;
  const std::vector<std::string> all = exchange(mine, "non-finite gradients");
  for (int r = 0; r < group_->size(); ++r) {
    const std::string& text = all[static_cast<size_t>(r)];
    if (text.empty()) continue;
    verdict.ranks.push_back(r);
    const size_t newline = text.find('\n');
    if (verdict.cause.text.empty()) verdict.cause = decode_cause(text.substr(0, newline));
    std::istringstream numbers(text.substr(newline + 1));
    for (uint32_t parameter = 0; numbers >> parameter;)
      where[parameter].push_back(r);
  }
  std::string names;
  for (const auto& [parameter, ranks] : where) {
    verdict.parameters.push_back(
        {parameters_[parameter].name, static_cast<int64_t>(parameters_[parameter].tensor.nbytes()), {}, ranks});
    if (verdict.parameters.size() <= 4) names += (names.empty() ? "" : ", ") + parameters_[parameter].name;
  }
  if (verdict.parameters.size() > 4) names += fmt::format(" and {} more", verdict.parameters.size() - 4);
  verdict.message = fmt::format(
      "gradients of {} are infinite or NaN on {} before the reduction in backward {}, and so on "
      "every rank after it: {}",
      names.empty() ? "no single parameter" : names, ranks_in_words(verdict.ranks), round_, verdict.cause.text);
  advisories_.add(fmt::format("non-finite {}", round_), std::move(verdict), group_->rank() == 0);
}

void Reducer::advise_on_late_rank() {
  // Per rank: when each gradient became ready, in microseconds since its backward began.
  std::string mine;
  for (uint32_t i = 0; i < parameters_.size(); ++i)
    mine += fmt::format("{} ", events_.ready[i] ? (events_.ready[i] - events_.began) / 1000 : -1);
  const std::vector<std::string> all = exchange(mine, "ready times");
  std::vector<std::vector<int64_t>> times(all.size());
  std::vector<int64_t> last(all.size(), 0);
  for (size_t r = 0; r < all.size(); ++r) {
    std::istringstream in(all[r]);
    for (int64_t time = 0; in >> time;) {
      times[r].push_back(time);
      last[r] = std::max(last[r], time);
    }
    if (times[r].size() != parameters_.size()) return;
  }
  const auto slowest = static_cast<size_t>(std::max_element(last.begin(), last.end()) - last.begin());
  std::vector<int64_t> sorted = last;
  std::sort(sorted.begin(), sorted.end());
  const int64_t typical = sorted[(sorted.size() - 1) / 2];
  // The first parameter, in ready order, at which the slow rank falls behind by half of what it loses in all.
  std::vector<uint32_t> order;
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    if (times[slowest][i] >= 0) order.push_back(i);
  }
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return times[slowest][a] < times[slowest][b]; });
  uint32_t first_late = order.empty() ? 0 : order.front();
  for (const uint32_t parameter : order) {
    std::vector<int64_t> others;
    for (size_t r = 0; r < times.size(); ++r) {
      if (r != slowest && times[r][parameter] >= 0) others.push_back(times[r][parameter]);
    }
    if (others.empty()) continue;
    std::sort(others.begin(), others.end());
    first_late = parameter;
    if (times[slowest][parameter] - others[others.size() / 2] > (last[slowest] - typical) / 2) break;
  }
  Verdict verdict;
  verdict.kind = "slow_rank";
  verdict.severity = Severity::Warning;
  verdict.iteration = round_;
  verdict.ranks = {static_cast<int>(slowest)};
  verdict.cause.kind = CauseKind::Slow;
  set_place(verdict.cause, backward_where_);
  verdict.parameters.push_back(
      {parameters_[first_late].name, static_cast<int64_t>(parameters_[first_late].tensor.nbytes()), {}, verdict.ranks});
  verdict.cause.text = fmt::format(
      "in four backwards in a row rank {} was late: its last gradient came after {:.1f} ms, {:.1f} ms on the others; "
      "the "
      "first that is late is {}",
      slowest, static_cast<double>(last[slowest]) * 1e-3, static_cast<double>(typical) * 1e-3,
      parameters_[first_late].name);
  verdict.message = verdict.cause.text + "; every rank waits for it";
  verdict.advice = "look at what that rank does before this parameter: a hook, a larger batch, a slower or busier core";
  advisories_.add("late", std::move(verdict), group_->rank() == 0);
}

// At once where a gradient hook stands on one rank alone. Size by itself varies in a sound training too (a batch that
// one rank has learnt by heart): the same rank has to stand out several times in a row.
void Reducer::advise_on_outlier() {
  // Per rank and parameter: log2 of the sum of squares, and the line of a gradient hook.
  std::string mine;
  for (uint32_t i = 0; i < parameters_.size(); ++i) {
    const autograd::AutogradMeta& meta = *autograd::meta(parameters_[i].tensor);
    mine += fmt::format("{:.4g}{}{}\n", own_sums_[i] > 0 ? std::log2(own_sums_[i]) : -999.0, kField,
                        meta.hooks.empty() ? "" : to_string(meta.hooks.back().where));
  }
  const std::vector<std::string> all = exchange(mine, "sizes of gradients");
  struct Entry {
    double size;
    std::string hook;
  };
  std::vector<std::vector<Entry>> entries(all.size());
  for (size_t r = 0; r < all.size(); ++r) {
    std::istringstream in(all[r]);
    for (std::string line; std::getline(in, line);) {
      const std::vector<std::string> fields = fields_of(line);
      entries[r].push_back({std::atof(fields[0].c_str()), fields.size() > 1 ? fields[1] : ""});
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
  Verdict verdict;
  verdict.kind = "gradient_outlier";
  verdict.severity = Severity::Warning;
  verdict.iteration = round_;
  verdict.cause.kind = CauseKind::NormOutlier;
  set_place(verdict.cause, backward_where_);
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
    verdict.parameters.push_back(
        {parameters_[i].name, static_cast<int64_t>(parameters_[i].tensor.nbytes()), ready, {far.second}});
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
  Verdict verdict;
  verdict.kind = "uneven_batches";
  verdict.severity = Severity::Warning;
  verdict.iteration = round_;
  verdict.cause.kind = CauseKind::UnevenBatches;
  set_place(verdict.cause, backward_where_);
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
      "ranks / "
      "all samples";
  advisories_.add("batches", std::move(verdict), group_->rank() == 0);
}

void Reducer::warn_of_early_write(uint32_t parameter) {
  if (!options_.diagnosis || advisories_.has("early write")) return;
  const LocalGradient& local = local_[parameter];
  for (const autograd::Write& write : autograd::writes_to(slots_[parameter].view, local.writes_at_accumulation)) {
    const std::string op = write.op;
    if (op == "zero_" || op == "fill_") continue;
    Verdict verdict;
    verdict.kind = "edited_before_reduction";
    verdict.severity = Severity::Warning;
    verdict.iteration = round_;
    verdict.ranks = {group_->rank()};
    verdict.parameters.push_back(
        {parameters_[parameter].name, static_cast<int64_t>(parameters_[parameter].tensor.nbytes()), {}, verdict.ranks});
    verdict.cause.kind = CauseKind::EditedByHand;
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
