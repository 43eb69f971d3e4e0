// The oracle: which weights of a program get gradients, and what has to be reported of its fault.
#include "spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace brigade::test::fuzz {
namespace {

bool contains(const std::vector<size_t>& values, size_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::set<size_t> trained(const Spec& spec) { return reached(spec, {}); }

// The names of what faults write to, then of the other trained parameters.
std::vector<std::string> names_of(Kind kind) {
  switch (kind) {
    case Kind::Linear:
    case Kind::Affine: break;
    case Kind::Adapter: return {"up.weight", "down.weight"};
    case Kind::Experts: return {"gate.weight", "first.weight", "first.bias", "second.weight", "second.bias"};
  }
  return {"weight", "bias"};
}

std::vector<std::string> names_of(const Spec& spec, const std::set<size_t>& modules, bool marked_only = false) {
  std::vector<std::string> names;
  for (const size_t module : modules) {
    for (const std::string& name : names_of(spec.layers[module].kind)) {
      names.push_back(fmt::format("layer{}.{}", module, name));
      if (marked_only) break;
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

bool does_any(const Spec& spec, Extra extra) {
  return std::any_of(spec.beside.begin(), spec.beside.end(), [&](const Beside& each) { return each.what == extra; });
}

// Whether the weights are also written to by some ranks only.
bool writes_alone(const Spec& spec) {
  return std::any_of(spec.beside.begin(), spec.beside.end(), [&](const Beside& each) {
    return (each.what == Extra::SaveAndLoad || each.what == Extra::SwapsBack) && each.ranks + 1 != 1U << spec.ranks;
  });
}

// A gradient that the second model contributes too is neither missing nor local.
bool is_of_second(const Spec& spec) {
  if (!spec.shared || !trained(spec).contains(*spec.shared)) return false;
  const Fault fault = spec.fault.what;
  return fault == Fault::LastInNoSync || fault == Fault::ThawedLayer ||
         (leaves_unused(fault) && !reached(spec, spec.fault).contains(*spec.shared));
}

// An allowed omission has to leave something to train on every rank.
bool is_allowed(const Spec& spec) {
  const Planted& allowed = spec.allowed;
  if (allowed.what == Fault::None) return true;
  if (spec.mode != Mode::UnusedAllowed || reached(spec, allowed).empty()) return false;
  // The fault must not be planted in the step of the omission.
  if (spec.fault.what != Fault::None &&
      (allowed.repeats ? spec.fault.step >= allowed.step : spec.fault.step == allowed.step))
    return false;
  return !(spec.second == Second::InLoss && allowed.what == Fault::DroppedHead && allowed.layer == spec.heads.back());
}

}  // namespace

void close(Spec& spec) {
  std::vector<bool> used(spec.layers.size() + 1, false);
  for (const Layer& layer : spec.layers)
    used[layer.input] = true;
  for (size_t node = 1; node < used.size(); ++node) {
    if (!used[node] && !contains(spec.heads, node)) spec.heads.push_back(node);
  }
  std::sort(spec.heads.begin(), spec.heads.end());
}

std::vector<int> ranks_in(uint32_t mask, int ranks) {
  std::vector<int> found;
  for (int r = 0; r < ranks; ++r) {
    if (mask >> r & 1U) found.push_back(r);
  }
  return found;
}

std::set<size_t> reached(const Spec& spec, const Planted& fault) {
  std::vector<bool> live(spec.layers.size() + 1, false);
  for (const size_t head : spec.heads)
    live[head] = live[head] || !(fault.what == Fault::DroppedHead && fault.layer == head);
  std::set<size_t> modules;
  for (size_t i = spec.layers.size(); i-- > 0;) {
    if (!live[i + 1]) continue;
    const bool here = fault.layer == i;
    if (here && (fault.what == Fault::DetachedResult || fault.what == Fault::NoGradLayer ||
                 fault.what == Fault::Threshold || fault.what == Fault::ReadAsNumber))
      continue;
    live[spec.layers[i].input] = true;
    const size_t module = spec.layers[i].module;
    const bool skipped = here && fault.what == Fault::SkippedLayer;
    const bool gone = (fault.what == Fault::FrozenLayer || fault.what == Fault::ReplacedLayer) && fault.layer == module;
    const bool thawed = fault.what == Fault::ThawedLayer && fault.layer == module;
    if (!skipped && !gone && (thawed || !contains(spec.frozen, module))) modules.insert(module);
  }
  return modules;
}

bool leaves_unused(Fault fault) {
  switch (fault) {
    case Fault::SkippedLayer:
    case Fault::DetachedResult:
    case Fault::NoGradLayer:
    case Fault::Threshold:
    case Fault::ReadAsNumber:
    case Fault::DroppedHead:
    case Fault::FrozenLayer:
    case Fault::ReplacedLayer:
    case Fault::IdleExpert:
    case Fault::ConstantLoss: return true;
    default: return false;
  }
}

bool is_telling(const Spec& spec) {
  const std::set<size_t> wanted = trained(spec);
  const Planted& fault = spec.fault;
  if (spec.shared && does_any(spec, Extra::BareForward)) return false;  // the ranks would not agree who averages it
  if (wanted.empty() || !is_allowed(spec)) return false;
  if (spec.mode != Mode::Strict && leaves_unused(fault.what)) return false;
  if (is_of_second(spec)) return false;
  // A wrapper that trains only the shared module counts no backwards.
  if (spec.shared && wanted == std::set<size_t>{*spec.shared}) return false;
  // Operations of another thread are not on the tape, so the cause may not be found.
  const bool threaded = std::any_of(spec.layers.begin(), spec.layers.end(),
                                    [](const Layer& layer) { return layer.form == Form::Thread; });
  if (threaded && leaves_unused(fault.what)) return false;
  const bool found_later = spec.rule == Rule::ByHand;  // in the next step
  switch (fault.what) {
    case Fault::OtherSchedule:
      if (!spec.scheduler || spec.rule == Rule::ByHand || fault.step + 1 == spec.steps) return false;
      [[fallthrough]];
    case Fault::OtherLearningRate: {
      if (spec.rule == Rule::ByHand) return fault.step + 1 < spec.steps && !does_any(spec, Extra::BareForward);
      if (spec.two_optimizers && spec.layers.front().kind == Kind::Adapter)
        return false;  // the first may hold its base
      // The first optimizer has the other rate, and may hold no trained parameter.
      std::set<size_t> modules;
      for (const Layer& layer : spec.layers)
        modules.insert(layer.module);
      const auto held = static_cast<std::ptrdiff_t>(spec.two_optimizers ? (modules.size() + 1) / 2 : modules.size());
      return std::any_of(modules.begin(), std::next(modules.begin(), held),
                         [&](size_t module) { return wanted.contains(module); });
    }
    case Fault::None:
    case Fault::Exception:
    case Fault::MoreMicroBatches:
    case Fault::SummingHook:
    case Fault::EarlyStop: return true;
    case Fault::LoadedWeights: return spec.rule != Rule::ByHand || !does_any(spec, Extra::BareForward);
    case Fault::ClippedGradients:
      if (does_any(spec, Extra::ScaleGrads)) return false;  // which of two edits is wrong is not known
      return !found_later || fault.step + 1 < spec.steps;
    case Fault::RepeatedBackward: return spec.micro_batches == 1 && fault.ranks + 1 == 1U << spec.ranks;
    case Fault::LoneCollective:
    case Fault::SkippedStep: return fault.step + 1 < spec.steps && spec.rule != Rule::ByHand;
    // An exception of the module itself, called without the wrapper, is not seen.
    case Fault::CaughtException:
      return spec.second == Second::None && spec.wrapped_again == 0 && !does_any(spec, Extra::BareForward);
    case Fault::IdleExpert: {
      const size_t module = spec.layers[fault.layer].module;
      const auto users = std::count_if(spec.layers.begin(), spec.layers.end(),
                                       [module](const Layer& layer) { return layer.module == module; });
      return spec.layers[module].kind == Kind::Experts && users == 1 && spec.shared != module &&
             wanted.contains(module);
    }
    // All gradients of the step before have to be there still. A program that sets other gradients in their place is
    // not reported.
    case Fault::NotCleared:
      if (spec.rule == Rule::ByHand) return false;
      return fault.step > 0 && spec.allowed.what == Fault::None && !does_any(spec, Extra::CloneGrads);
    case Fault::LastInNoSync:
      if (found_later && (fault.step + 2 >= spec.steps || does_any(spec, Extra::BareForward))) return false;
      return spec.second != Second::InLoss && spec.mode == Mode::Strict;
    // With several micro-batches the other ones are reduced.
    case Fault::ConstantLoss:
      // A rank without an optimizer does not read gradients; one without the wrapper's forward need not take part.
      if (spec.rule == Rule::ByHand || does_any(spec, Extra::BareForward)) return false;
      return spec.micro_batches == 1 && spec.second != Second::InLoss;
    case Fault::EditedGradient:
      if (does_any(spec, Extra::ScaleGrads)) return false;  // as above
      if (found_later && fault.step + 1 == spec.steps) return false;
      return wanted.contains(fault.layer);
    case Fault::WrittenWeight:
      if (spec.rule == Rule::ByHand && does_any(spec, Extra::BareForward))
        return false;  // they are read in its forward
      return wanted.contains(fault.layer);
    case Fault::OwnGradient:
      if (found_later && fault.step + 1 == spec.steps) return false;
      [[fallthrough]];
    case Fault::ReplacedBefore:
      // Without an optimizer, an old layer is held by nobody.
      // Gradients of the new one that only some ranks have put in place by hand are not cleared, and add up.
      return wanted.contains(fault.layer) && spec.rule != Rule::ByHand && spec.wrapped_again == 0 &&
             spec.shared != fault.layer && !does_any(spec, Extra::CloneGrads) &&
             !(does_any(spec, Extra::SaveAndLoad) && does_any(spec, Extra::Probe));
    case Fault::ScalingHook:
      if (spec.wrapped_again > 0) return false;  // each wrapper tells
      return wanted.contains(fault.layer);
    case Fault::ThawedLayer:
      // An optimizer that holds no other reduced parameter is stopped on its own rank only.
      return spec.mode == Mode::Strict && spec.rule != Rule::ByHand && contains(spec.frozen, fault.layer) &&
             !spec.two_optimizers && reached(spec, fault).contains(fault.layer) &&
             spec.layers[fault.layer].kind != Kind::Adapter;
    case Fault::DroppedHead:
      if (spec.second == Second::InLoss && fault.layer == spec.heads.back()) return false;
      [[fallthrough]];
    default: {
      const std::set<size_t> found = reached(spec, fault);
      return !found.empty() && found != wanted;
    }
  }
}

Expected expected_of(const Spec& spec) {
  const Planted& fault = spec.fault;
  const std::vector<int> ranks = ranks_in(fault.ranks, spec.ranks);
  const std::set<size_t> wanted = trained(spec);
  std::set<size_t> missing;
  for (const size_t module : wanted) {
    if (!reached(spec, fault).contains(module)) missing.insert(module);
  }
  const auto unused = [&](const char* cause) {
    return Expected{"unused_parameters", cause, names_of(spec, missing), ranks};
  };
  const std::vector<std::string> all = names_of(spec, wanted);
  // The step of the first optimizer reports its own parameters only.
  const std::vector<std::string> of_first = spec.two_optimizers ? std::vector<std::string>() : all;
  const std::vector<std::string> weight = names_of(spec, {fault.layer}, true);
  // A rank that alone saves and loads, or swaps, has written twice; the last of these writes is blamed.
  const bool is_written_again = writes_alone(spec);
  const std::vector<int> writers = is_written_again && spec.ranks == 2 ? std::vector<int>() : ranks;
  // A shared module is compared by the wrapper that averages it.
  const std::vector<std::string> own_names = spec.shared ? std::vector<std::string>() : of_first;
  // Of two ranks, either may be right.
  const std::vector<int> odd = spec.ranks > 2 ? ranks : std::vector<int>{0, 1};
  Expected mismatch{.kind = "collective_mismatch",
                    .cause = "collective_differs",
                    .ranks = spec.ranks > 2 ? ranks : std::vector<int>{},
                    .has_line = false};
  // Without an optimizer, weights that have become different are found in the next reduced backward.
  const bool by_hand = spec.rule == Rule::ByHand;
  Expected apart{.kind = "parameters_written", .cause = "values_differ", .ranks = odd, .has_line = false, .later = 1};
  switch (fault.what) {
    case Fault::None: return {};
    case Fault::SkippedLayer: return unused("module_not_called");
    case Fault::DetachedResult: return unused("detached");
    case Fault::NoGradLayer: return unused("no_grad");
    case Fault::Threshold: return unused("not_differentiable");
    // A number may be read for a log; what is certain is that the tensor is used nowhere else.
    case Fault::ReadAsNumber: return unused("output_dropped");
    case Fault::DroppedHead: return unused("output_dropped");
    case Fault::FrozenLayer: return unused("frozen");
    case Fault::ReplacedLayer: return unused("replaced");
    case Fault::ThawedLayer: return {"unmanaged_parameters", "thawed", names_of(spec, {fault.layer}), ranks};
    case Fault::ConstantLoss:
      // The next collective of the rank is one of the second wrapper.
      if (spec.second == Second::After) return {"collective_mismatch", "collective_differs", {}, {}, false, false};
      return {"unused_parameters", "detached", all, ranks};
    case Fault::EditedGradient:
      if (by_hand) return apart;
      return {"gradients_edited", "edited_by_hand", weight, ranks};
    case Fault::OwnGradient:
      if (by_hand) return apart;
      return {"unreduced_gradients", "set_by_hand", weight, ranks};
    case Fault::OtherLearningRate:  // of two ranks, either may have the right one, set by a schedule
      if (by_hand) return {.kind = apart.kind, .cause = apart.cause, .ranks = odd, .later = 1};
      return {.kind = "optimizers_differ",
              .cause = "options_differ",
              .ranks = spec.ranks > 2 ? ranks : std::vector<int>{},
              .has_line = spec.ranks > 2};
    case Fault::LastInNoSync:
      // The weights are still the same before the next forward after a reduced backward, as in meta-learning.
      if (by_hand) apart.later = 2;
      if (by_hand) return apart;
      return {"unreduced_gradients", "not_reduced", of_first, ranks};
    case Fault::WrittenWeight:
      return {.kind = "parameters_written",
              .cause = "values_differ",
              .parameters = weight,
              .ranks = writers,
              .has_line = !is_written_again};
    case Fault::MoreMicroBatches:
      if (does_any(spec, Extra::Barrier) || does_any(spec, Extra::ReduceMetric)) return mismatch;
      return {"uneven_micro_batches", "uneven_batches", {}, odd, true, false};
    case Fault::SummingHook:
      return {"hook_result", "wrong_scale", spec.shared ? std::vector<std::string>() : all, ranks, false, false};
    case Fault::NotCleared: {
      // Each wrapper reports what it averages; the second one may average the shared module.
      std::set<size_t> own = wanted;
      if (spec.shared) own.erase(*spec.shared);
      return {
          "gradients_accumulate", "not_cleared", spec.two_optimizers ? of_first : names_of(spec, own), {}, true, false};
    }
    case Fault::CaughtException:
      if (does_any(spec, Extra::Barrier)) {
        mismatch.ahead = fault.ranks;
        return mismatch;
      }
      return {"batch_skipped", "exception", {}, ranks, true};
    case Fault::IdleExpert: {
      const std::string second = fmt::format("layer{}.second.", spec.layers[fault.layer].module);
      return {"unused_parameters", "module_not_called", {second + "bias", second + "weight"}, ranks};
    }
    case Fault::LoadedWeights:
      return {.kind = "parameters_written",
              .cause = "values_differ",
              .parameters = own_names,
              .ranks = writers,
              .has_line = !is_written_again};
    case Fault::ClippedGradients:
      if (by_hand) return apart;
      return {"gradients_edited", "edited_by_hand", own_names, ranks};
    case Fault::OtherSchedule:
      return {.kind = "optimizers_differ", .cause = "options_differ", .has_line = false, .later = 1};
    case Fault::LoneCollective:
      if (does_any(spec, Extra::Decision)) return mismatch;
      mismatch.ahead = ~fault.ranks;
      return mismatch;
    case Fault::SkippedStep:
      if (!does_any(spec, Extra::Decision)) mismatch.ahead = fault.ranks;
      return mismatch;
    case Fault::RepeatedBackward:
      return {.kind = "backward_repeated", .cause = "not_cleared", .ranks = ranks, .is_warning = true, .later = 1};
    case Fault::EarlyStop: return {"rank_lost", "rank_gone", {}, ranks, false, false, fault.ranks};
    case Fault::ScalingHook: return {"gradient_outlier", "hook_differs", weight, ranks, true, false};
    case Fault::ReplacedBefore: return {"stale_optimizer", "replaced", {}, {}, true, false};
    case Fault::Exception: return {"rank_lost", "exception", {}, ranks, false, false, fault.ranks};
  }
  return {};
}

}  // namespace brigade::test::fuzz
