// Audits each gradient, and computes the digest that the ranks agree on before a step.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/backward.h>
#include <brigade/autograd/gradient_scale.h>
#include <brigade/autograd/meta.h>
#include <brigade/core/clock.h>
#include <brigade/core/detail/living.h>
#include <brigade/core/fnv.h>
#include <brigade/core/warning.h>
#include <brigade/dist/checks/step_habits.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/checks/wrapper_history.h>
#include <brigade/dist/comm_hooks/comm_hook.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/report.h>
#include <brigade/dist/diagnosis/wire.h>
#include <brigade/dist/groups/own_collectives.h>

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace brigade::dist {
namespace {

using LivingChecks = brigade::detail::Living<StepCheck>;  // the checks of all wrappers

bool holds(const std::vector<NamedParameter>& parameters, const Tensor& parameter) {
  return std::ranges::any_of(parameters, [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
}

// Merges verdicts with the same cause. Verdicts on gradients that were not cleared merge even if their counts of
// backwards differ; the text describes the first.
void add_to(std::vector<Verdict>& found, Verdict verdict) {
  for (Verdict& known : found) {
    const bool is_same = known.cause.same_as(verdict.cause) ||
                         (verdict.cause.kind == CauseKind::NotCleared && known.cause.place == verdict.cause.place);
    if (known.kind != verdict.kind || !is_same) continue;
    known.parameters.push_back(verdict.parameters.front());
    return;
  }
  found.push_back(std::move(verdict));
}

// Whether the program wrote to the gradient between the step that used it and the next backward: what is left in it is
// kept on purpose, such as a momentum. Clipping only bounds a gradient, and at that place is another mistake.
bool is_kept_on_purpose(const Tensor& grad, const autograd::GradStamp& stamp) {
  return std::ranges::any_of(autograd::writes_to(grad, stamp.writes_at_use), [&](const autograd::Write& write) {
    return write.number <= stamp.writes_at_next && !std::string_view(write.op).starts_with("clip_grad_");
  });
}

// Whether what differs was written by an earlier step, not by hand.
bool were_moved_by_step(std::span<const Verdict> differing) {
  return std::ranges::any_of(differing, [](const Verdict& each) { return each.cause.op.starts_with("step of "); });
}

// Merges verdicts on buffers: the first one, with the parameters of all.
Verdict with_others(const std::vector<Verdict>& buffers) {
  Verdict told = buffers.front();
  for (size_t i = 1; i < buffers.size(); ++i)
    told.parameters.insert(told.parameters.end(), buffers[i].parameters.begin(), buffers[i].parameters.end());
  if (buffers.size() == 1) return told;
  told.cause.note = fmt::format("{} more differ", buffers.size() - 1);
  set_message(told, headline(told));
  return told;
}

}  // namespace

StepCheck::StepCheck(Reducer& reducer, WrapperLog& log, StepCheckOptions options, CheckedModule checked)
    : reducer_(reducer),
      group_(reducer.group()),
      log_(log),
      options_(options),
      checked_(std::move(checked)),
      habits_(reducer, log, checked_.parameters),
      modes_(checked_.module),
      autocast_(reducer.parameters()) {
  LivingChecks::all().add(this);
}

StepCheck::~StepCheck() { LivingChecks::all().remove(this); }

bool StepCheck::is_managed_elsewhere(const Tensor& parameter) const {
  if (is_reduced(parameter)) return true;
  return LivingChecks::all().any(
      [&](const StepCheck& each) { return each.checked_.ignored.contains(parameter.impl()); });
}

bool StepCheck::is_in_other_module(const Tensor& parameter) const {
  return LivingChecks::all().any([&](const StepCheck& each) {
    if (&each == this || &each.group_ != &group_) return false;  // the checks of other ranks have other groups
    return holds(each.checked_.parameters(), parameter);
  });
}

Verdict StepCheck::unmanaged(const autograd::Update& update, size_t position,
                             const std::vector<NamedParameter>& current) const {
  const Tensor& parameter = update.parameters[position];
  const autograd::AutogradMeta& meta = *autograd::meta(parameter);
  UnmanagedParameter found{.bytes = static_cast<int64_t>(parameter.nbytes()),
                           .optimizer = update.name,
                           .at = meta.registered_at,
                           .last_use = meta.stamp.last_backward_at};
  const auto in_module = std::find_if(current.begin(), current.end(),
                                      [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
  if (in_module == current.end()) {
    found.name = name_of_unmanaged(update, position);
    return unmanaged_parameters(found);
  }
  found.name = in_module->name;
  const bool replaced = std::any_of(reducer_.parameters().begin(), reducer_.parameters().end(),
                                    [&](const NamedParameter& each) { return each.name == found.name; });
  const bool thawed = !replaced && meta.requires_grad_set_at.line() != 0 &&
                      to_string(meta.requires_grad_set_at) != to_string(meta.registered_at);
  found.kind = replaced ? CauseKind::Replaced : thawed ? CauseKind::Thawed : CauseKind::Added;
  if (thawed) found.at = meta.requires_grad_set_at;
  return unmanaged_parameters(found);
}

// Checks where the gradient of a managed parameter comes from.
std::optional<Verdict> StepCheck::look_at(uint32_t managed, const autograd::GradStamp& stamp,
                                          SourceLocation step_at) const {
  // Built only for a verdict: a step inspects each of its parameters.
  const auto parameter = [&] { return about(reducer_.parameters()[managed], {}, {group_.rank()}); };
  const LocalGradient& local = reducer_.accumulation().local(managed);
  // Backwards may have added to a gradient that was set by hand: a resumed accumulation. For a gradient that was only
  // set, the ranks compare the values.
  const bool gathers = local.backwards > 0 && stamp.backwards > 0;
  if (stamp.by_hand && !gathers) return std::nullopt;
  const SourceLocation reducing_at = reducer_.reducing_at();
  if (reducing_at.line() != 0 || gathers) {
    return unreduced_gradients({.by_hand = false,
                                .set_at = {},
                                .backwards = stamp.backwards,
                                .local = local.backwards,
                                .last_local = local.where,
                                .no_sync_at = reducer_.accumulation().no_sync_where(),
                                .step_at = step_at,
                                .reducing_at = reducing_at},
                               parameter());
  }
  if (stamp.uses > 0 && stamp.backwards > stamp.backwards_used &&
      !is_kept_on_purpose(reducer_.parameters()[managed].tensor.grad(), stamp))
    return gradients_accumulate(stamp.backwards, stamp.used_at, step_at, parameter());
  return std::nullopt;
}

std::vector<Verdict> StepCheck::audit(const autograd::Update& update) {
  std::vector<Verdict> found;
  std::vector<NamedParameter> current;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    if (!meta || !meta->grad.defined() || checked_.ignored.contains(parameter.impl()) ||
        was_reduced_by_hand(meta->grad))
      continue;
    const int64_t position = reducer_.find(parameter);
    if (position >= 0) {
      if (is_judged_elsewhere(position)) continue;
      if (std::optional<Verdict> verdict = look_at(static_cast<uint32_t>(position), meta->stamp, update.where))
        add_to(found, std::move(*verdict));
      continue;
    }
    if (is_managed_elsewhere(parameter) || meta->stamp.is_mean) continue;  // averaged by a destroyed wrapper
    if (current.empty()) current = checked_.parameters();
    const bool ours = holds(current, parameter);
    if (!ours && (!reducer_.accumulation().has_heard(meta->stamp.last_backward) || is_in_other_module(parameter)))
      continue;
    Verdict verdict = unmanaged(update, i, current);
    verdict.parameters.front().missing_ranks = {group_.rank()};
    add_to(found, std::move(verdict));
  }
  for (Verdict& verdict : found) {
    verdict.ranks = {group_.rank()};
    verdict.iteration = reducer_.past().rounds;
  }
  // Warnings are not sent to the peers.
  std::erase_if(found, [&](Verdict& verdict) {
    if (verdict.severity == Severity::Error) return false;
    set_message(verdict, fmt::format("{}: {}, before the step at {}", verdict.what,
                                     names_in_words(verdict.parameters, 1), to_string(update.where)));
    log_.advisories.add_own(verdict.kind, verdict);
    return true;
  });
  if (is_inner(update, found)) inner_.now = std::exchange(found, {});
  return found;
}

Verdict StepCheck::scale_fault(const autograd::Update& update) const {
  const autograd::ScaleFault& fault = *update.scale_fault;
  const Tensor& parameter = update.parameters[fault.position];
  const int64_t managed = reducer_.find(parameter);
  const std::string name = managed >= 0 ? reducer_.parameters()[static_cast<size_t>(managed)].name
                                        : name_of_unmanaged(update, fault.position);
  Verdict verdict = wrongly_scaled(fault, update.where, about({name, parameter}, {}, {}));
  verdict.ranks = {group_.rank()};
  verdict.iteration = reducer_.past().rounds;
  return verdict;
}

// Whether it changes all elements of a gradient by one rule: the first few elements show a difference.
static bool is_by_rule(const autograd::Write& write) {
  const std::string_view op = write.op;
  return op.starts_with("clip_grad_") || op == "unscale_";
}

StepCheck::Agreement StepCheck::agreement(const autograd::Update& update) const {
  // Hashes the content of own_step() except for source lines: ranks in different branches may take the same step.
  Agreement result;
  uint64_t& hash = result.digest;
  const Count count = count_of(update);
  hash = fnv(update.options(), fnv(update.name) + (count.of_all ? update.number : count.since));
  if (!update.moves) return result;  // gradients that still accumulate may differ
  // A difference that was already reported is no reason to exchange more.
  if (!log_.advisories.has(kModesDiffer)) hash = fnv_step(hash, modes_.digest(reducer_.past().rounds));
  if (!log_.advisories.has(kAutocastDiffers)) hash = fnv_step(hash, autocast_.digest(reducer_.past().rounds));
  uint64_t members = inner_.is_now() ? 1 : 0;  // a sum: the order within a group does not matter
  GroupAt group(update.groups);
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    const Tensor grad = parameter.grad();
    hash = fnv_step(hash, grad.defined() ? 1 : 2);
    const int64_t position = reducer_.find(parameter);
    if (position >= 0) members += mix(((uint64_t{group(i)} + 1) << 32) | static_cast<uint32_t>(position));
    if (position < 0 || !grad.defined() || checked_.ignored.contains(parameter.impl()) ||
        is_judged_elsewhere(position) || !uses_means())  // local gradients differ anyway
      continue;
    const bool by_hand = autograd::meta(parameter)->stamp.by_hand;
    const std::vector<autograd::Write> edits = edits_of(static_cast<uint32_t>(position), grad);
    const bool unseen = may_be_edited_unseen(static_cast<uint32_t>(position), grad);
    if (!by_hand && !unseen && edits.empty()) continue;
    if (by_hand) hash = fnv("set_grad", hash);
    for (const autograd::Write& write : edits)
      hash = fnv(write.op, hash);
    const bool by_rule = !by_hand && !unseen && std::ranges::all_of(edits, &is_by_rule);
    result.values.add(i, by_rule ? values_of_some(grad) : values_of(grad));
  }
  hash = fnv_step(hash, members);
  for (size_t b = 0; b < log_.hook_probes.size() && !log_.advisories.has(kHookResultsDiffer); ++b)
    result.values.add(3 * update.parameters.size() + b, {log_.hook_probes[b], 0});
  for (const auto& [i, writes] : written_by_hand(update))
    result.values.add(update.parameters.size() + i, values_of(update.parameters[i].detach()));
  // Hashes the name, not the values: they may differ although all ranks have replaced the buffer.
  for (const StepOnRank::Edit& write : buffers_replaced(update))
    hash = fnv(write.parameter, hash);
  for (const StepOnRank::Edit& write : buffers_updated(update)) {
    const std::vector<NamedParameter> buffers = checked_.buffers();
    const auto buffer = std::ranges::find(buffers, write.parameter, &NamedParameter::name);
    result.values.add(fnv(write.parameter) % 65536, values_of(buffer->tensor.detach()));  // a small number
    result.has_updated_buffers = true;
  }
  // In local SGD each rank has its own optimizer state.
  const bool is_changed = update.state_loaded_at.line() != 0 || !state_written(update).empty();
  if (is_changed && reducer_.past().backward.sent) {
    hash = fnv("state", hash);  // the state is empty before the first step
    const StateValues state = state_of(update);
    for (size_t i = 0; i < state.tensors.size(); ++i)
      result.values.add(2 * update.parameters.size() + i, state.tensors[i]);
    for (const int64_t step : state.steps)
      hash = fnv_step(hash, static_cast<uint64_t>(step));
  }
  return result;
}

StepCheck::StateValues StepCheck::state_of(const autograd::Update& update) const {
  StateValues values;
  if (!update.state) return values;
  for (const autograd::KeptState& kept : update.state()) {
    const Tensor& parameter = update.parameters[kept.position];
    if (reducer_.find(parameter) < 0 || checked_.ignored.contains(parameter.impl())) continue;
    for (const Tensor& tensor : kept.tensors) {
      values.tensors.push_back(values_of(tensor));
      values.positions.push_back(kept.position);
    }
    values.steps.push_back(kept.step);
  }
  return values;
}

void StepCheck::raise(const autograd::Update& update, std::vector<Verdict> verdicts) const {
  for (Verdict& verdict : verdicts) {
    std::string concerned = names_in_words(verdict.parameters);
    if (!concerned.empty()) concerned = ": " + concerned;
    // No rank is named if nothing points to one of them.
    if (!verdict.ranks.empty()) concerned += fmt::format(", on {}", ranks_in_words(verdict.ranks));
    set_message(verdict, fmt::format("{}{}, before {}.step() at {} (not taken)", verdict.what, concerned, update.name,
                                     to_string(update.where)));
  }
  const std::string message = in_words(verdicts) + group_.names().legend(group_.size());
  log_.of_steps.add(message, group_.rank());
  throw ConsistencyError(message, std::move(verdicts), update.where);
}

void StepCheck::raise_of_all(const autograd::Update& update, const std::vector<Verdict>& own,
                             const Topic& about) const {
  const auto by_rank = decoded_of_all<std::vector<Verdict>>(group_.all_gather_text(to_text(own), about, update.where));
  if (!update.scale_fault) raise(update, merge(by_rank));
}

void StepCheck::verify(const autograd::Update& update) {
  std::vector<CheckedTensor> tensors;
  for (const NamedParameter& each : checked_.parameters())
    tensors.push_back({"parameter", each.name, each.tensor});
  for (const NamedParameter& each : reducer_.parameters())
    tensors.push_back({"gradient", each.name, each.tensor.grad()});
  if (options_.own_buffers) {
    for (const NamedParameter& each : checked_.buffers())
      tensors.push_back({"buffer", each.name, each.tensor});
  }
  std::vector<Verdict> errors, buffers;
  for (Verdict& verdict : compare_over_ranks(group_, tensors, update.where).verdicts) {
    verdict.iteration = reducer_.past().rounds;
    (verdict.kind == "buffers_differ" ? buffers : errors).push_back(std::move(verdict));
  }
  if (!buffers.empty()) {
    // Many layers share one cause: the message describes the first and counts the others.
    Verdict told = with_others(buffers);
    told.severity = Severity::Warning;  // own buffers are the user's choice: broadcast_buffers is off
    log_.advisories.add("buffers", told);
  }
  if (!errors.empty()) raise(update, std::move(errors));
}

void StepCheck::warn_of_retained_graphs(const autograd::Update& update) {
  for (const autograd::RetainedGraph& graph : autograd::take_retained_graphs()) {
    if (graph.used_again) continue;
    Verdict verdict = needless_retain_graph(graph.where, graph.bytes, graph.nodes, update.where);
    verdict.iteration = reducer_.past().rounds;
    verdict.ranks = {group_.rank()};
    log_.advisories.add_own("retain_graph " + to_string(graph.where), std::move(verdict));
  }
}

void StepCheck::look_at_local(const autograd::Update& update) {
  if (group_.rank() != 0 || group_.size() == 1) return;  // rank 0 warns for all
  if (reducer_.past().backward.sent || group_.attached<WrapperHistory>().has_shared_steps()) return;
  if (!local_steps_) {
    const CommHookPtr& hook = reducer_.setup().hook;
    local_steps_ = std::make_shared<LocalSteps>(in_words(reducer_.options().owner), hook ? hook->name() : "");
    group_.attached<WrapperHistory>().at_end([steps = local_steps_] { steps->tell(); });
  }
  local_steps_->look_at(update);
}

void StepCheck::operator()(const autograd::Update& update) {
  const bool found_inf = update.scaled && update.scaled->found_inf;
  inner_.begin(reducer_.past().rounds);
  agree(update);
  if (!update.moves || update.scale_fault) return;
  if (!update.scaled || !update.scaled->found_inf) inner_.end(update, reducer_.past().rounds);
  log_.timeline.add(StepEvents{.optimizer = update.name,
                               .number = update.number,
                               .where = update.where,
                               .at = now_ns(),
                               .loss_scale = update.scaled ? update.scaled->loss_scale : 0,
                               .found_inf = found_inf,
                               .skipped = update.scaled && update.scaled->found_inf});
}

void StepCheck::answer_scaler(const autograd::Update& update, Found found) const {
  autograd::ScaledStep& scaled = *update.scaled;
  // If the device of one rank has found a non-finite gradient, all ranks must skip this step.
  if (scaled.device_found_inf.defined()) {
    group_
        .all_reduce(scaled.device_found_inf,
                    {.op = ReduceOp::Max,
                     .topic = {Phase::Step, Name("what the scaler has found in a step"), reducer_.options().owner}},
                    update.where)
        ->wait();
  }
  scaled.found_inf = found == kHere;
  scaled.found_elsewhere = found == kElsewhere;
  scaled.is_agreed = true;
}

void StepCheck::agree(const autograd::Update& update) {
  if (group_.size() == 1) return;
  const bool ours = std::any_of(update.parameters.begin(), update.parameters.end(),
                                [&](const Tensor& parameter) { return reducer_.find(parameter) >= 0; });
  if (const uint64_t joins = reducer_.shared_leaves().joins(); joins != std::exchange(joins_, joins) && !is_paused_)
    resume_after_join();
  if (ours) count(update);
  if (is_paused_ || reducer_.shared_leaves().are_in_join()) {
    if (ours) refuse_after_uneven_join(update);
    // The ranks that still take part have found the same in the same averages.
    if (ours && update.scaled) update.scaled->is_agreed = true;
    return;
  }
  std::vector<Verdict> verdicts;
  if (update.moves) verdicts = audit(update);
  if (update.scale_fault) verdicts.push_back(scale_fault(update));
  if (!ours) {
    // Some ranks may have found nothing, and those do not wait here.
    if (!verdicts.empty() && !update.scale_fault) raise(update, std::move(verdicts));
    if (options_.diagnosis && update.moves) habits_.look_at_other(update);
    return;
  }
  warn_of_retained_graphs(update);
  if (options_.diagnosis && update.moves) habits_.look_at(update);

  // An all-reduce with Max of x and ~x: all ranks agree exactly if both results equal this rank's values.
  const Agreement own = agreement(update);
  const Tensor words = group_.allocate(4 + ValuesDigest::kWords, kInt64);
  auto* const values = words.data_ptr<int64_t>();
  values[0] = static_cast<int64_t>(own.digest);
  values[1] = ~values[0];
  values[2] = !verdicts.empty() ? 2 : log_.advisories.has_undelivered() || has_held_warnings() ? 1 : 0;
  values[3] = !update.scaled                   ? kNothing
              : update.scaled->found_inf       ? kHere
              : update.scaled->found_elsewhere ? kElsewhere
                                               : kNothing;
  std::ranges::copy(own.values.words(), values + 4);
  // The topic omits the optimizer's name, so that ranks that step different optimizers meet here and report which.
  static const Name purpose("agreement on a step");
  const Topic topic{Phase::Step, purpose, reducer_.options().owner};
  group_.all_reduce(words, {.op = ReduceOp::Max, .topic = topic, .iteration = update.number}, update.where)->wait();
  const bool differs = values[0] != ~values[1] || ValuesDigest::differ(values + 4);
  if (own.has_updated_buffers) ++updates_compared_;
  if (!differs) drifting_ = 0;
  if (values[2] == 1) share_warnings(log_.advisories, group_, update.where);
  // The findings of a rank say more than a mismatch of the steps, which follows from them.
  if (values[2] == 2) return raise_of_all(update, verdicts, topic);
  if (differs) {
    const std::vector<Verdict> differing = compare(update, topic);
    if (were_moved_by_step(differing)) return raise_of_all(update, not_taken_back(differing), topic);
    if (!differing.empty()) raise(update, differing);
  }
  const bool moves = update.moves && values[3] != kHere;  // not skipped
  log_.of_steps.end_row();
  if (update.moves) steps_[update.optimizer].compared(update, moves);  // otherwise nothing was compared
  if (update.scaled) answer_scaler(update, static_cast<Found>(values[3]));
  if (!moves) return;
  look_at_local(update);
  if (options_.verify_every > 0 && uses_means() && count_of(update).since % options_.verify_every == 0) verify(update);
}

}  // namespace brigade::dist
