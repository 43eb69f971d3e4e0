// Gathers what every rank knows of the failed backward.
#include <brigade/dist/observers/error_reporter.h>

#include <brigade/autograd/meta.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/reducer/round.h>
#include <brigade/optim/optimizer.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace brigade::dist {
namespace {

// `named`: what the wrapper holds; `successor`: what the module now has under that name.
Cause replaced(const NamedParameter& named, const Tensor& successor) {
  Cause cause;
  cause.kind = CauseKind::Replaced;
  cause.module = module_of(named.name);
  const autograd::AutogradMeta* known = autograd::meta(successor);
  if (known && known->registered_at.line() != 0) cause.place = known->registered_at;
  cause.text = fmt::format("the module holds another object than the wrapper{}",
                           cause.place ? ", registered at " + to_string(cause.place) : "");
  return cause;
}

// Whether an optimizer holds parameters of both kinds.
bool shares_optimizer(const std::vector<bool>& ready, const ReducerSetup& setup) {
  return std::ranges::any_of(optim::optimizers_of_this_thread(), [&](const optim::Optimizer* optimizer) {
    bool holds[2] = {false, false};
    for (const Tensor& parameter : optimizer->parameters()) {
      const auto known = std::ranges::find_if(
          setup.parameters, [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
      if (known != setup.parameters.end()) holds[ready[static_cast<size_t>(known - setup.parameters.begin())]] = true;
    }
    return holds[0] && holds[1];
  });
}

// Puts the history of uses in front of the existing note: when the parameter last worked precedes where.
void note_uses(Cause& cause, const UseHistory& history, uint64_t backward) {
  const std::string uses = history.in_words(backward);
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

RankReport ErrorReporter::own_report(const Round& round, const TracedBackward* backward,
                                     const std::string& failure) const {
  const ReducerSetup& setup = round.setup();
  RankReport mine;
  mine.rank = setup.group->rank();
  mine.round = round.number();
  mine.backward = round.where();
  mine.failure = failure;
  mine.recorded.assign(round.recorded().used.begin(), round.recorded().used.end());
  mine.recorded_at = round.recorded().where;
  WrappedModule wrapped{.reached_any = round.start().reaches_any(), .diagnosis = diagnosis_};
  for (const NamedParameter& each : setup.parameters)
    wrapped.newest = std::max(wrapped.newest, each.tensor.id());
  if (setup.options.module_paths) wrapped.paths = setup.options.module_paths();
  std::optional<CauseSearch> search;
  std::vector<NamedParameter> current;
  if (setup.options.current_parameters) current = setup.options.current_parameters();
  for (uint32_t i = 0; i < setup.count(); ++i) {
    // In an accumulation a parameter counts as ready if any of its backwards used it.
    const bool ready = round.uses(i) || round.start().joined;
    mine.ready.push_back(ready);
    mine.reached.push_back(setup.reached[i]);
    mine.elsewhere.push_back(setup.is_elsewhere(i));
    if (!backward || !failure.empty()) continue;
    const NamedParameter& named = setup.parameters[i];
    const Outcome& outcome = round.outcome();
    if (ready && outcome.users[i] == setup.group->size() - outcome.joined) continue;
    if (!search) search.emplace(*backward, wrapped);
    if (ready) {
      if (const Place called = search->called_at(named); called.line != 0) mine.called.emplace(i, called);
      continue;
    }
    const auto successor = std::find_if(current.begin(), current.end(), [&](const NamedParameter& each) {
      return each.name == named.name && !each.tensor.is_same(named.tensor);
    });
    Cause cause = successor != current.end() ? replaced(named, successor->tensor) : (*search)(named);
    if (!used_.empty()) note_uses(cause, used_[i], round.number());
    mine.causes.emplace(i, std::move(cause));
  }
  mine.keeps_graph = backward && backward->keeps_graph();
  mine.shares_optimizer = shares_optimizer(mine.ready, setup);
  return mine;
}

std::exception_ptr ErrorReporter::error_of_all(const Round& round, const RankReport& own) {
  const ReducerSetup& setup = round.setup();
  const Outcome& outcome = round.outcome();
  auto reports = decoded_of_all<RankReport>(round.exchange(to_text(own), "error report", Phase::Report));
  for (const RankReport& report : reports)
    used_by_rank_.push_back(report.ready);
  if (outcome.same_round && outcome.failed == 0) take_earlier(reports);
  ErrorContext context;
  context.by_fabric = by_fabric_;
  context.find_unused_parameters = setup.options.find_unused_parameters;
  context.failed = outcome.failed > 0;
  context.same_round = outcome.same_round;
  context.changed = outcome.changed > 0;
  for (uint32_t i = 0; i < setup.count(); ++i)
    context.expected.push_back(setup.has_to_be_ready(i));
  context.where = round.where();
  context.wrapper = in_words(setup.options.owner);
  context.legend = setup.group->names().legend(setup.group->size());
  const ReductionError error = compose_error(reports, setup.parameters, context);
  log_->of_backwards.add(error.what(), setup.group->rank());
  return std::make_exception_ptr(error);
}

void ErrorReporter::remember(const Round& round) {
  const Outcome& outcome = round.outcome();
  if (!diagnosis_ || (outcome.present == 0 && outcome.failed == 0)) return;
  used_.resize(round.setup().count());
  for (uint32_t i = 0; i < used_.size(); ++i)
    if (!round.start().joined && round.uses(i)) used_[i].add(round.number());
}

void ErrorReporter::on_finish(const Round& round) {
  used_by_rank_.clear();
  log_->of_backwards.end_row();
  remember(round);
}

std::exception_ptr ErrorReporter::on_error(const Round& round, const TracedBackward* backward,
                                           const std::string& failure) {
  used_by_rank_.clear();
  // The observer that has rejected the gradients says why.
  const bool is_explained = round.outcome().rejected && round.outcome().failed == 0;
  const RankReport own = is_explained ? RankReport() : own_report(round, backward, failure);
  remember(round);
  return is_explained ? nullptr : error_of_all(round, own);
}

}  // namespace brigade::dist
