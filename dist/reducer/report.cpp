// Composes the error of all ranks after a backward whose gradients cannot be trusted. Only this report and advice
// (diagnosis/advice.h) exchange more than the payload; all ranks do so together, since all have read the same words.
#include <brigade/dist/reducer/round.h>

#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/diagnosis/wire.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

// `named`: what the wrapper holds; `successor`: what the module now has under that name.
Cause replaced(const NamedParameter& named, const Tensor& successor) {
  Cause cause;
  cause.kind = CauseKind::Replaced;
  cause.module = module_of(named.name);
  cause.text = "it exists twice: the wrapper holds the object that was there when it was made";
  const autograd::AutogradMeta* known = autograd::meta(successor);
  if (known && known->registered_at.line() != 0) {
    cause.place = known->registered_at;
    cause.text += ", the module holds one registered at " + to_string(known->registered_at);
  }
  return cause;
}

// Puts the history of uses in front of the existing note: when the parameter last worked precedes where.
void note_uses(Cause& cause, const UseHistory& history, uint64_t backward) {
  const bool is_not_taken = cause.kind == CauseKind::ModuleNotCalled || cause.kind == CauseKind::NotUsed;
  const std::string uses = history.in_words(is_not_taken ? "used" : "ready", backward);
  if (uses.empty()) return;
  cause.note = cause.note.empty() ? uses : uses + "; " + cause.note;
}

// A parameter that some rank reached in none of several backwards that may reach it together is missing on that rank,
// but not on those that reached it. (If all ranks reached it, each in a different backward, it is missing in this
// one.)
void take_earlier(std::vector<RankReport>& reports) {
  for (uint32_t i = 0; i < reports.front().ready.size(); ++i) {
    const auto missed = [&](const RankReport& report) { return !report.ready[i] && !report.reached[i]; };
    if (std::ranges::none_of(reports, missed)) continue;
    for (RankReport& report : reports) {
      if (!report.reached[i]) continue;
      report.ready[i] = true;
      report.causes.erase(i);
    }
  }
}

}  // namespace

RankReport Round::own_report(const TracedBackward* backward, const std::string& failure,
                             std::span<const UseHistory> used) const {
  RankReport mine;
  mine.rank = setup_.group->rank();
  mine.round = start_.number;
  mine.backward = start_.where;
  mine.failure = failure;
  mine.recorded.assign(recorded_.used.begin(), recorded_.used.end());
  mine.recorded_at = recorded_.where;
  WrappedModule wrapped{.diagnosis = setup_.options.diagnosis};
  wrapped.reached_any = start_.reaches_any();
  for (const NamedParameter& each : setup_.parameters)
    wrapped.newest = std::max(wrapped.newest, each.tensor.id());
  if (setup_.options.module_paths) wrapped.paths = setup_.options.module_paths();
  std::vector<NamedParameter> current;
  if (setup_.options.current_parameters) current = setup_.options.current_parameters();
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    // In an accumulation a parameter counts as ready if any of its backwards used it.
    const bool ready = uses(i) || start_.joined;
    mine.ready.push_back(ready);
    mine.reached.push_back(setup_.reached[i]);
    mine.elsewhere.push_back(setup_.is_elsewhere(i));
    if (ready || !backward || !failure.empty()) continue;
    const NamedParameter& named = setup_.parameters[i];
    const auto successor = std::find_if(current.begin(), current.end(), [&](const NamedParameter& each) {
      return each.name == named.name && !each.tensor.is_same(named.tensor);
    });
    Cause cause =
        successor != current.end() ? replaced(named, successor->tensor) : find_cause(named, *backward, wrapped);
    note_uses(cause, used[i], start_.number);
    mine.causes.emplace(i, std::move(cause));
  }
  return mine;
}

std::exception_ptr Round::error(const TracedBackward* backward, const std::string& failure,
                                std::span<const UseHistory> used) {
  if (!outcome_.hooks.empty() && outcome_.failed == 0) {
    name_undecided_buckets();
    std::string message =
        "the communication hook does not give the mean of the ranks' gradients. The gradients of this backward were "
        "cleared on every rank.\n";
    for (const Verdict& verdict : outcome_.hooks)
      message += "\n  " + verdict.message;
    message += setup_.group->names().legend(setup_.group->size());
    return std::make_exception_ptr(ReductionError(message, outcome_.hooks, start_.where));
  }
  std::vector<RankReport> reports;
  for (const std::string& text : exchange(to_text(own_report(backward, failure, used)), "error report", Phase::Report))
    reports.push_back(decoded<RankReport>(text));
  for (const RankReport& report : reports)
    used_by_rank_.push_back(report.ready);
  if (outcome_.same_round && outcome_.failed == 0) take_earlier(reports);
  ErrorContext context;
  context.find_unused_parameters = setup_.options.find_unused_parameters;
  context.report_at_once = setup_.options.report_at == ReducerOptions::ReportAt::Backward;
  context.failed = outcome_.failed > 0;
  context.same_round = outcome_.same_round;
  context.changed = outcome_.changed > 0;
  for (uint32_t i = 0; i < setup_.count(); ++i) {
    context.expected.push_back(setup_.has_to_be_ready(i));
    context.buckets.push_back(buckets_.slot(i).bucket);
  }
  context.where = start_.where;
  context.legend = setup_.group->names().legend(setup_.group->size());
  return std::make_exception_ptr(compose_error(reports, setup_.parameters, context));
}

}  // namespace brigade::dist
