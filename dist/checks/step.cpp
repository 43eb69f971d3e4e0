// The audit of each gradient, the digest that ranks agree on, and the verdicts where they do not.
#include <brigade/dist/checks/step.h>

#include <brigade/autograd/backward.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/write_log.h>
#include <brigade/dist/checks/fnv.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/diagnosis/fields.h>
#include <brigade/dist/diagnosis/verdict_text.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace brigade::dist {

namespace {

std::string module_of_name(const std::string& name) {
  const size_t dot = name.rfind('.');
  return dot == std::string::npos ? "" : name.substr(0, dot);
}

// Hyperparameters that differ: "group 0: lr 0.1" against "group 0: lr 0.01" gives "lr of group 0".
std::string differing_options(const std::string& a, const std::string& b) {
  const auto split = [](const std::string& text, const std::string& separator) {
    std::vector<std::string> parts;
    size_t begin = 0;
    for (size_t end = 0; (end = text.find(separator, begin)) != std::string::npos; begin = end + separator.size())
      parts.push_back(text.substr(begin, end - begin));
    parts.push_back(text.substr(begin));
    return parts;
  };
  std::string found;
  const std::vector<std::string> groups_a = split(a, "\n");
  const std::vector<std::string> groups_b = split(b, "\n");
  for (size_t g = 0; g < std::min(groups_a.size(), groups_b.size()); ++g) {
    const std::vector<std::string> options_a = split(groups_a[g].substr(groups_a[g].find(':') + 1), ",");
    const std::vector<std::string> options_b = split(groups_b[g].substr(groups_b[g].find(':') + 1), ",");
    for (size_t i = 0; i < std::min(options_a.size(), options_b.size()); ++i) {
      if (options_a[i] == options_b[i]) continue;
      const std::string name = split(options_a[i].substr(1), " ").front();
      found += fmt::format("{}{} of group {}", found.empty() ? "" : ", ", name, g);
    }
  }
  return found.empty() ? "parameter groups" : found;
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
  Verdict verdict;
  verdict.kind = "unmanaged_parameters";
  std::string name;
  const auto in_module = std::find_if(current.begin(), current.end(),
                                      [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
  if (in_module == current.end()) {
    name = meta.registered_as.empty() ? fmt::format("parameter {} of {}", position, update.name) : meta.registered_as;
    verdict.cause.kind = CauseKind::OutsideWrapper;
    set_place(verdict.cause, meta.registered_at.line() != 0 ? meta.registered_at : meta.stamp.last_backward_at);
    verdict.cause.text = fmt::format("{} is trained by {} and belongs to no wrapped module: its gradient stays local",
                                     name, update.name);
    if (meta.registered_at.line() != 0)
      verdict.cause.text += fmt::format(" (registered at {})", to_string(meta.registered_at));
    verdict.advice =
        "make it a parameter of the wrapped module, wrap its module too, or average its gradient yourself "
        "(group->all_reduce(p.grad(), {.op = ReduceOp::Avg}))";
  } else {
    name = in_module->name;
    const bool replaced = std::any_of(reducer_.parameters().begin(), reducer_.parameters().end(),
                                      [&](const NamedParameter& each) { return each.name == name; });
    const bool thawed = !replaced && meta.requires_grad_set_at.line() != 0 &&
                        !(meta.requires_grad_set_at.line() == meta.registered_at.line() &&
                          to_string(meta.requires_grad_set_at) == to_string(meta.registered_at));
    verdict.cause.kind = replaced ? CauseKind::Replaced : thawed ? CauseKind::Thawed : CauseKind::Added;
    const SourceLocation at = thawed ? meta.requires_grad_set_at : meta.registered_at;
    set_place(verdict.cause, at);
    if (replaced) {
      verdict.cause.text = fmt::format(
          "`{}` exists twice: the wrapper holds the old object, {} moves the new one, "
          "registered at {}",
          name, update.name, to_string(at));
      verdict.advice = "wrap again after replacing a module or a parameter";
    } else if (thawed) {
      verdict.cause.text =
          fmt::format("`{}` is trainable since {}, after wrapping: unknown to the reducer", name, to_string(at));
      verdict.advice = "thaw it before wrapping, or wrap again after thawing";
    } else {
      verdict.cause.text =
          fmt::format("`{}` was added after wrapping, at {}: unknown to the reducer", name, to_string(at));
      verdict.advice = "build the whole module before wrapping, or wrap again";
    }
  }
  verdict.cause.module = module_of_name(name);
  verdict.parameters.push_back({name, static_cast<int64_t>(parameter.nbytes()), {}, {group_.rank()}});
  return verdict;
}

std::vector<Verdict> StepCheck::audit(const autograd::Update& update) {
  std::vector<Verdict> found;
  std::vector<NamedParameter> current;
  const auto add = [&](Verdict verdict) {
    verdict.ranks = {group_.rank()};
    verdict.iteration = reducer_.rounds();
    for (Verdict& known : found) {
      if (known.kind != verdict.kind || !known.cause.same_as(verdict.cause)) continue;
      known.parameters.push_back(verdict.parameters.front());
      return;
    }
    found.push_back(std::move(verdict));
  };
  for (size_t i = 0; i < update.parameters.size(); ++i) {
    const Tensor& parameter = update.parameters[i];
    const autograd::AutogradMeta* meta = autograd::meta(parameter);
    if (!meta || !meta->grad.defined() || ignored_.contains(parameter.impl()) || was_reduced_by_hand(meta->grad))
      continue;
    const autograd::GradStamp& stamp = meta->stamp;
    const int64_t position = reducer_.find(parameter);
    if (position < 0) {
      if (is_managed_elsewhere(parameter)) continue;
      if (current.empty()) current = parameters_();
      const bool ours = std::any_of(current.begin(), current.end(),
                                    [&](const NamedParameter& each) { return each.tensor.is_same(parameter); });
      if (ours || reducer_.accumulation().has_heard(stamp.last_backward)) add(unmanaged(update, i, current));
      continue;
    }
    const auto managed = static_cast<uint32_t>(position);
    const NamedParameter& named = reducer_.parameters()[managed];
    Verdict verdict;
    verdict.parameters.push_back({named.name, static_cast<int64_t>(parameter.nbytes()), {}, {group_.rank()}});
    const LocalGradient& local = reducer_.accumulation().local(managed);
    if (stamp.by_hand) {
      verdict.kind = "unreduced_gradients";
      verdict.cause.kind = CauseKind::SetByHand;
      set_place(verdict.cause, stamp.set_at);
      verdict.cause.text =
          fmt::format("the gradient was set at {}, not made by an observed backward: it is this rank's own",
                      to_string(stamp.set_at));
      verdict.advice =
          "let backward() make the gradient, or average it over the ranks after setting it "
          "(group->all_reduce(p.grad(), {.op = ReduceOp::Avg}))";
      add(std::move(verdict));
    } else if (local.backwards > 0 && stamp.backwards > 0) {
      verdict.kind = "unreduced_gradients";
      verdict.cause.kind = CauseKind::NotReduced;
      set_place(verdict.cause, local.where);
      const uint32_t own = std::min(local.backwards, stamp.backwards);
      verdict.cause.text = fmt::format(
          "step() at {} with {} of {} micro-batches reduced: the last backward, at {}, ran under no_sync (opened at "
          "{})",
          to_string(update.where), stamp.backwards - own, stamp.backwards, to_string(local.where),
          to_string(reducer_.accumulation().no_sync_where()));
      verdict.advice = "run the last backward before step() outside no_sync: it reduces what has gathered";
      add(std::move(verdict));
    } else if (stamp.uses > 0 && stamp.backwards > stamp.backwards_used) {
      verdict.kind = "gradients_accumulate";
      verdict.severity = Severity::Warning;
      verdict.cause.kind = CauseKind::NotCleared;
      set_place(verdict.cause, update.where);
      verdict.cause.text = fmt::format(
          "the gradient has gathered {} backwards, and the step at {} has used part of it already: no zero_grad() came "
          "between",
          stamp.backwards, to_string(stamp.used_at));
      verdict.advice = "call optimizer.zero_grad() after each step";
      add(std::move(verdict));
    }
  }
  // Warnings do not concern the peers.
  std::erase_if(found, [&](Verdict& verdict) {
    if (verdict.severity == Severity::Error) return false;
    verdict.message = fmt::format("{} and {} more: {}", verdict.parameters.front().name, verdict.parameters.size() - 1,
                                  verdict.cause.text);
    if (verdict.parameters.size() == 1)
      verdict.message = fmt::format("{}: {}", verdict.parameters.front().name, verdict.cause.text);
    reducer_.advisories().add(verdict.kind, verdict, group_.rank() == 0);
    return true;
  });
  return found;
}

// Everything in which the ranks have to agree, as fields: name and number, line, options, gradients, edits.
std::string StepCheck::describe_step(const autograd::Update& update) const {
  FieldWriter out;
  out << fmt::format("step {} of {}", update.number, update.name) << to_string(update.where) << update.options;
  std::string gradients;
  std::vector<std::string> edits;
  for (const Tensor& parameter : update.parameters) {
    const Tensor grad = parameter.grad();
    gradients += grad.defined() ? '1' : '0';
    const int64_t position = reducer_.find(parameter);
    if (position < 0 || !grad.defined()) continue;
    const auto managed = static_cast<uint32_t>(position);
    for (const autograd::Write& write : autograd::writes_to(grad, reducer_.accumulation().local(managed).writes_at_reduction)) {
      edits.push_back(reducer_.parameters()[managed].name);
      edits.emplace_back(write.op);
      edits.push_back(to_string(write.where));
    }
  }
  out << gradients << static_cast<int64_t>(edits.size() / 3);
  for (const std::string& edit : edits)
    out << edit;
  return out.text();
}

uint64_t StepCheck::digest(const autograd::Update& update) const {
  // As describe_step, but lines may differ (ranks in different branches that do the same), and nothing is allocated.
  uint64_t hash = fnv(update.name) + update.number;
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

std::vector<Verdict> StepCheck::compare(const std::vector<std::string>& descriptions,
                                        const autograd::Update& update) const {
  struct Step {
    std::string name, where, options, gradients;
    std::vector<std::array<std::string, 3>> edits;
  };
  std::vector<Step> steps;
  for (const std::string& text : descriptions) {
    FieldReader in(text);
    Step& step = steps.emplace_back();
    step.name = in.next();
    step.where = in.next();
    step.options = in.next();
    step.gradients = in.next();
    for (int64_t count = in.number(); count > 0; --count) {
      std::string name = in.next();
      std::string op = in.next();
      step.edits.push_back({std::move(name), std::move(op), in.next()});
    }
  }
  // The ranks that are unlike most (on a tie: unlike rank 0).
  const auto odd = [&](const auto& key) {
    std::vector<std::string> keys;
    for (const Step& step : steps)
      keys.push_back(key(step));
    const auto count = [&](const std::string& k) { return std::count(keys.begin(), keys.end(), k); };
    const std::string* usual = &keys.front();
    for (const std::string& k : keys) {
      if (count(k) > count(*usual)) usual = &k;
    }
    std::vector<int> ranks;
    for (size_t r = 0; r < keys.size(); ++r) {
      if (keys[r] != *usual) ranks.push_back(static_cast<int>(r));
    }
    return ranks;
  };
  const auto each_rank = [&](const auto& say) {
    std::string text;
    for (size_t r = 0; r < steps.size(); ++r)
      text += fmt::format("{}rank {}: {}", r > 0 ? "; " : "", r, say(steps[r]));
    return text;
  };
  std::vector<Verdict> verdicts;
  const auto add = [&](Verdict verdict, const std::vector<int>& ranks, const std::string& place) {
    verdict.ranks = ranks;
    verdict.iteration = reducer_.rounds();
    if (verdict.cause.file.empty() && !place.empty()) {
      const size_t colon = place.rfind(':');
      verdict.cause.file = place.substr(0, colon);
      verdict.cause.line = static_cast<uint32_t>(std::strtoul(place.c_str() + colon + 1, nullptr, 10));
    }
    verdicts.push_back(std::move(verdict));
  };
  if (const auto ranks = odd([](const Step& step) { return step.name; }); !ranks.empty()) {
    Verdict verdict;
    verdict.kind = "optimizers_differ";
    verdict.cause.kind = CauseKind::StepsDiffer;
    verdict.cause.text = "the ranks are in different optimizer steps: " +
                         each_rank([](const Step& step) { return step.name + " at " + step.where; });
    verdict.advice = "let every rank step the same optimizers equally often: decide on all ranks alike whether to skip";
    add(verdict, ranks, steps[static_cast<size_t>(ranks.front())].where);
    return verdicts;
  }
  if (const auto ranks = odd([](const Step& step) { return step.options; }); !ranks.empty()) {
    Verdict verdict;
    verdict.kind = "optimizers_differ";
    verdict.cause.kind = CauseKind::OptionsDiffer;
    const Step& other = steps[static_cast<size_t>(ranks.front())];
    const auto same =
        std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.options != other.options; });
    verdict.cause.op = differing_options(same->options, other.options);
    verdict.cause.text =
        fmt::format("{} differs between the ranks before {} (at {}): {}", verdict.cause.op, update.name, other.where,
                    each_rank([](const Step& step) { return step.options; }));
    verdict.advice =
        "step schedulers with a value that is the same on every rank: all_reduce the loss or metric first "
        "(ReduceOp::Avg)";
    add(verdict, ranks, other.where);
  }
  if (const auto ranks = odd([](const Step& step) { return step.gradients; }); !ranks.empty()) {
    Verdict verdict;
    verdict.kind = "optimizers_differ";
    verdict.cause.kind = CauseKind::StepsDiffer;
    const Step& other = steps[static_cast<size_t>(ranks.front())];
    const auto usual =
        std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.gradients != other.gradients; });
    for (size_t i = 0; i < update.parameters.size() && i < other.gradients.size() && i < usual->gradients.size(); ++i) {
      if (other.gradients[i] == usual->gradients[i]) continue;
      const int64_t position = reducer_.find(update.parameters[i]);
      const std::string name = position < 0 ? fmt::format("parameter {} of {}", i, update.name)
                                            : reducer_.parameters()[static_cast<size_t>(position)].name;
      verdict.parameters.push_back({name, static_cast<int64_t>(update.parameters[i].nbytes()), {}, ranks});
    }
    verdict.cause.text = fmt::format("{} has a gradient on some ranks only, so it would move there only",
                                     verdict.parameters.empty() ? "a parameter" : verdict.parameters.front().name);
    verdict.advice = "clear and set gradients on every rank alike";
    add(verdict, ranks, other.where);
  }
  const auto edits_of = [](const Step& step) {
    std::string key;
    for (const auto& edit : step.edits)
      key += edit[0] + "/" + edit[1] + ";";
    return key;
  };
  if (const auto ranks = odd(edits_of); !ranks.empty()) {
    // Name the edits that not all ranks made.
    Verdict verdict;
    verdict.kind = "gradients_edited";
    verdict.cause.kind = CauseKind::EditedByHand;
    std::set<std::string> named;
    std::set<int> editing;
    for (size_t r = 0; r < steps.size(); ++r) {
      for (const auto& edit : steps[r].edits) {
        const bool everywhere = std::all_of(steps.begin(), steps.end(), [&](const Step& step) {
          return std::any_of(step.edits.begin(), step.edits.end(),
                             [&](const auto& other) { return other[0] == edit[0] && other[1] == edit[1]; });
        });
        if (everywhere && steps.size() > 1) continue;
        editing.insert(static_cast<int>(r));
        if (verdict.cause.text.empty()) {
          verdict.cause.op = edit[1];
          verdict.cause.module = module_of_name(edit[0]);
          verdict.cause.text = fmt::format(
              "{} at {} changed the gradient of {} on rank {} after the reduction, and not "
              "on every rank",
              edit[1], edit[2], edit[0], r);
          const size_t colon = edit[2].rfind(':');
          verdict.cause.file = edit[2].substr(0, colon);
          verdict.cause.line = static_cast<uint32_t>(std::strtoul(edit[2].c_str() + colon + 1, nullptr, 10));
        }
        if (!named.insert(edit[0]).second) continue;
        for (const NamedParameter& each : reducer_.parameters()) {
          if (each.name != edit[0]) continue;
          verdict.parameters.push_back(
              {each.name, static_cast<int64_t>(each.tensor.nbytes()), {}, {static_cast<int>(r)}});
        }
      }
    }
    if (verdict.cause.text.empty())
      verdict.cause.text = "gradients were edited a different number of times on the ranks";
    verdict.advice = "edit reduced gradients on every rank alike, or before the reduction in a gradient hook";
    add(verdict, editing.empty() ? ranks : std::vector<int>(editing.begin(), editing.end()), "");
  }
  return verdicts;
}

void StepCheck::raise(const autograd::Update& update, std::vector<Verdict> verdicts) const {
  std::string message =
      fmt::format("{}.step() at {}: not taken, nothing has moved.", update.name, to_string(update.where));
  for (Verdict& verdict : verdicts) {
    std::string names;
    for (size_t i = 0; i < verdict.parameters.size() && i < 8; ++i)
      names += (i > 0 ? ", " : "") + verdict.parameters[i].name;
    if (verdict.parameters.size() > 8) names += fmt::format(" and {} more", verdict.parameters.size() - 8);
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
    Verdict verdict;
    verdict.kind = "needless_retain_graph";
    verdict.severity = Severity::Warning;
    verdict.iteration = reducer_.rounds();
    verdict.ranks = {group_.rank()};
    verdict.cause.kind = CauseKind::Wasteful;
    set_place(verdict.cause, graph.where);
    verdict.cause.text = fmt::format(
        "the backward at {} kept its graph (retain_graph): {} of results in {} operations, and no other backward came "
        "through it before the step at {}",
        to_string(graph.where), bytes_in_words(static_cast<int64_t>(graph.bytes)), graph.nodes,
        to_string(update.where));
    verdict.message = verdict.cause.text;
    verdict.advice = "leave retain_graph out: graphs that share nothing (one behind a detach()) are freed one by one";
    reducer_.advisories().add("retain_graph " + to_string(graph.where), std::move(verdict), group_.rank() == 0);
  }
}

void StepCheck::operator()(const autograd::Update& update) {
  if (paused_ > 0 || group_.size() == 1) return;
  const bool ours = std::any_of(update.parameters.begin(), update.parameters.end(),
                                [&](const Tensor& parameter) { return reducer_.find(parameter) >= 0; });
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
    const std::vector<Verdict> differing =
        compare(group_.all_gather_text(describe_step(update), description, update.where), update);
    if (!differing.empty()) raise(update, differing);
  }
  if (values[2] != 0) {
    std::vector<std::vector<Verdict>> by_rank;
    for (const std::string& text : group_.all_gather_text(encode(verdicts), description, update.where))
      by_rank.push_back(decode_verdicts(text));
    raise(update, merge(by_rank));
  }
  if (options_.verify_every > 0 && update.number % options_.verify_every == 0) verify(update);
}

}  // namespace brigade::dist
