// The audit of each gradient, the digest that ranks agree on, and the verdicts where they do not.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/backward.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/diagnosis/merge.h>
#include <brigade/dist/diagnosis/wire.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

// Two verdicts with one cause are one.
void add_to(std::vector<Verdict>& found, Verdict verdict) {
  for (Verdict& known : found) {
    if (known.kind != verdict.kind || !known.cause.same_as(verdict.cause)) continue;
    known.parameters.push_back(verdict.parameters.front());
    return;
  }
  found.push_back(std::move(verdict));
}

}  // namespace

StepCheck::StepCheck(Reducer& reducer, ProcessGroup& group, StepCheckOptions options, Tensors parameters,
                     Tensors buffers, std::unordered_set<const TensorImpl*> ignored)
    : reducer_(reducer),
      group_(group),
      options_(options),
      parameters_(std::move(parameters)),
      buffers_(std::move(buffers)),
      ignored_(std::move(ignored)) {}

bool StepCheck::is_managed_elsewhere(const Tensor& parameter) const {
  const autograd::AutogradMeta* known = autograd::meta(parameter);
  return std::any_of(known->observers.begin(), known->observers.end(),
                     [](const auto& observer) { return dynamic_cast<const Reducer*>(observer.listener) != nullptr; });
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
    found.name =
        meta.registered_as.empty() ? fmt::format("parameter {} of {}", position, update.name) : meta.registered_as;
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

// Where does the gradient of a managed parameter come from?
std::optional<Verdict> StepCheck::look_at(uint32_t managed, const autograd::GradStamp& stamp,
                                          SourceLocation step_at) const {
  const ParameterVerdict parameter = about(reducer_.parameters()[managed], {}, {group_.rank()});
  const LocalGradient& local = reducer_.accumulation().local(managed);
  if (stamp.by_hand || (local.backwards > 0 && stamp.backwards > 0)) {
    return unreduced_gradients({.by_hand = stamp.by_hand,
                                .set_at = stamp.set_at,
                                .backwards = stamp.backwards,
                                .local = local.backwards,
                                .last_local = local.where,
                                .no_sync_at = reducer_.accumulation().no_sync_where(),
                                .step_at = step_at},
                               parameter);
  }
  if (stamp.uses > 0 && stamp.backwards > stamp.backwards_used)
    return gradients_accumulate(stamp.backwards, stamp.used_at, step_at, parameter);
  return std::nullopt;
}

std::vector<Verdict> StepCheck::audit(const autograd::Update& update) {
  std::vector<Verdict> found;
  std::vector<NamedParameter> current;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    if (!meta || !meta->grad.defined() || ignored_.contains(parameter.impl()) || was_reduced_by_hand(meta->grad))
      continue;
    const int64_t position = reducer_.find(parameter);
    if (position >= 0) {
      if (std::optional<Verdict> verdict = look_at(static_cast<uint32_t>(position), meta->stamp, update.where))
        add_to(found, std::move(*verdict));
      continue;
    }
    if (is_managed_elsewhere(parameter)) continue;
    if (current.empty()) current = parameters_();
    const bool ours = std::any_of(current.begin(), current.end(),
                                  [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
    if (!ours && !reducer_.accumulation().has_heard(meta->stamp.last_backward)) continue;
    Verdict verdict = unmanaged(update, i, current);
    verdict.parameters.front().missing_ranks = {group_.rank()};
    add_to(found, std::move(verdict));
  }
  for (Verdict& verdict : found) {
    verdict.ranks = {group_.rank()};
    verdict.iteration = reducer_.rounds();
  }
  // Warnings do not concern the peers.
  std::erase_if(found, [&](Verdict& verdict) {
    if (verdict.severity == Severity::Error) return false;
    verdict.message = fmt::format("{}: {}", names_in_words(verdict.parameters, 1), verdict.cause.text);
    reducer_.advisories().add(verdict.kind, verdict, group_.rank() == 0);
    return true;
  });
  return found;
}

void StepCheck::resume_after_join() noexcept {
  rests_ = false;
  for (auto& [optimizer, steps] : steps_)
    steps.in_join = steps.latest;
}

void StepCheck::count(const autograd::Update& update) {
  Steps& steps = steps_[update.optimizer];
  if (update.number <= steps.in_join) steps = {};  // a new one in the place of one that is gone
  steps.latest = update.number;
}

StepCheck::Count StepCheck::count_of(const autograd::Update& update) const {
  const auto known = steps_.find(update.optimizer);
  const uint64_t in_join = known == steps_.end() ? 0 : known->second.in_join;
  return {in_join, update.number - in_join};
}

StepOnRank StepCheck::own_step(const autograd::Update& update) const {
  const Count count = count_of(update);
  StepOnRank step{.name = update.keeps_state || count.in_join == 0
                              ? fmt::format("step {} of {}", update.number, update.name)
                              : fmt::format("step {} of {}", count.since, update.name),
                  .where = update.where,
                  .options = update.options,
                  .gradients = {},
                  .edits = {},
                  .in_join = count.in_join,
                  .since_join = count.since};
  for (const Tensor& parameter : update.parameters) {
    const Tensor grad = parameter.grad();
    step.gradients += grad.defined() ? '1' : '0';
    const int64_t position = reducer_.find(parameter);
    if (position < 0 || !grad.defined()) continue;
    const auto managed = static_cast<uint32_t>(position);
    const uint64_t since = reducer_.accumulation().local(managed).writes_at_reduction;
    for (const autograd::Write& write : autograd::writes_to(grad, since))
      step.edits.push_back({reducer_.parameters()[managed].name, write.op, write.where});
  }
  return step;
}

uint64_t StepCheck::digest(const autograd::Update& update) const {
  // As own_step, but lines may differ (ranks in different branches that do the same), and nothing
  // is allocated.
  uint64_t hash = fnv(update.name) + (update.keeps_state ? update.number : count_of(update).since);
  hash = fnv(update.options, hash);
  for (const Tensor& parameter : update.parameters) {
    const Tensor grad = parameter.grad();
    hash = fnv_step(hash, grad.defined() ? 1 : 2);
    const int64_t position = reducer_.find(parameter);
    if (position < 0 || !grad.defined()) continue;
    const uint64_t since = reducer_.accumulation().local(static_cast<uint32_t>(position)).writes_at_reduction;
    if (autograd::writes_so_far() == since) continue;
    for (const autograd::Write& write : autograd::writes_to(grad, since))
      hash = fnv(write.op, hash);
  }
  return hash;
}

std::vector<Verdict> StepCheck::compare(const autograd::Update& update, std::string_view about) const {
  std::vector<StepOnRank> steps;
  const std::vector<std::string> texts =
      group_.all_gather_text(to_text(own_step(update)), std::string(about), update.where);
  for (const std::string& text : texts)
    steps.push_back(decoded<StepOnRank>(text));
  std::vector<NamedParameter> parameters;
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const int64_t position = reducer_.find(update.parameters[i]);
    parameters.push_back({position < 0 ? fmt::format("parameter {} of {}", i, update.name)
                                       : reducer_.parameters()[static_cast<size_t>(position)].name,
                          update.parameters[i]});
  }
  std::vector<Verdict> verdicts = optimizers_differ(steps, update.name, parameters);
  const bool in_one_step =
      std::all_of(steps.begin(), steps.end(), [&](const StepOnRank& step) { return step.name == steps.front().name; });
  if (in_one_step) {
    if (std::optional<Verdict> edited = gradients_edited(steps, reducer_.parameters()))
      verdicts.push_back(std::move(*edited));
  }
  for (Verdict& verdict : verdicts)
    verdict.iteration = reducer_.rounds();
  return verdicts;
}

void StepCheck::raise(const autograd::Update& update, std::vector<Verdict> verdicts) const {
  std::string message =
      fmt::format("{}.step() at {}: not taken, nothing has moved.", update.name, to_string(update.where));
  for (Verdict& verdict : verdicts) {
    std::string names = names_in_words(verdict.parameters);
    if (!names.empty()) names += fmt::format(" on {}: ", ranks_in_words(verdict.ranks));
    verdict.message = fmt::format("{}{}\n    fix:   {}", names, verdict.cause.text, verdict.advice);
    message += "\n  " + verdict.message;
  }
  throw ConsistencyError(message, std::move(verdicts), update.where);
}

void StepCheck::verify(const autograd::Update& update) {
  std::vector<CheckedTensor> tensors;
  for (const NamedParameter& each : parameters_())
    tensors.push_back({"parameter", each.name, each.tensor});
  for (const NamedParameter& each : reducer_.parameters())
    tensors.push_back({"gradient", each.name, each.tensor.grad()});
  if (options_.verify_buffers) {
    for (const NamedParameter& each : buffers_())
      tensors.push_back({"buffer", each.name, each.tensor});
  }
  std::vector<Verdict> errors;
  for (Verdict& verdict : compare_over_ranks(group_, tensors, update.where).verdicts) {
    verdict.iteration = reducer_.rounds();
    if (verdict.kind == "buffers_differ") {
      verdict.severity = Severity::Warning;  // as the user chose: broadcast_buffers is off
      reducer_.advisories().add("buffer " + verdict.parameters.front().name, verdict, group_.rank() == 0);
    } else {
      errors.push_back(std::move(verdict));
    }
  }
  if (!errors.empty()) raise(update, std::move(errors));
}

void StepCheck::warn_of_retained_graphs(const autograd::Update& update) {
  for (const autograd::RetainedGraph& graph : autograd::take_retained_graphs()) {
    if (graph.used_again) continue;
    Verdict verdict = needless_retain_graph(graph.where, graph.bytes, graph.nodes, update.where);
    verdict.iteration = reducer_.rounds();
    verdict.ranks = {group_.rank()};
    reducer_.advisories().add("retain_graph " + to_string(graph.where), std::move(verdict), group_.rank() == 0);
  }
}

void StepCheck::operator()(const autograd::Update& update) {
  if (group_.size() == 1) return;
  const bool ours = std::any_of(update.parameters.begin(), update.parameters.end(),
                                [&](const Tensor& parameter) { return reducer_.find(parameter) >= 0; });
  if (ours) count(update);
  if (rests_) return;
  std::vector<Verdict> verdicts = audit(update);
  if (!ours && verdicts.empty()) return;
  warn_of_retained_graphs(update);

  // Max of x and of ~x: the ranks agree exactly when both are the own value.
  const auto own = static_cast<int64_t>(digest(update));
  const Tensor words = group_.allocate(3, kInt64);
  auto* const values = words.data_ptr<int64_t>();
  values[0] = own;
  values[1] = ~own;
  values[2] = verdicts.empty() ? 0 : 1;
  const std::string description =
      fmt::format("agreement on a step of {}, DDP({})", update.name, reducer_.options().module_name);
  group_.all_reduce(words, {.op = ReduceOp::Max, .description = description, .iteration = update.number}, update.where)
      ->wait();
  if (values[0] != ~values[1]) {
    const std::vector<Verdict> differing = compare(update, description);
    if (!differing.empty()) raise(update, differing);
  }
  if (values[2] != 0) {
    std::vector<std::vector<Verdict>> by_rank;
    for (const std::string& text : group_.all_gather_text(to_text(verdicts), description, update.where))
      by_rank.push_back(decoded<std::vector<Verdict>>(text));
    raise(update, merge(by_rank));
  }
  if (options_.verify_every > 0 && count_of(update).since % options_.verify_every == 0) verify(update);
}

}  // namespace brigade::dist
