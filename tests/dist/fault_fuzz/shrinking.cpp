// Describes a program in words, and lists slightly simpler programs.
#include "spec.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace brigade::test::fuzz {
namespace {

constexpr const char* kFaultNames[] = {"none",
                                       "skipped layer",
                                       "detached result",
                                       "no_grad layer",
                                       "threshold",
                                       "read as a number",
                                       "dropped head",
                                       "frozen layer",
                                       "replaced layer",
                                       "thawed layer",
                                       "constant loss",
                                       "edited gradient",
                                       "own gradient",
                                       "other learning rate",
                                       "last micro-batch in no_sync",
                                       "written weight",
                                       "more micro-batches",
                                       "summing hook",
                                       "no zero_grad",
                                       "exception",
                                       "caught exception",
                                       "idle expert",
                                       "loaded weights",
                                       "clipped gradients",
                                       "other schedule",
                                       "skipped step",
                                       "repeated backward",
                                       "lone collective",
                                       "early stop",
                                       "scaling hook",
                                       "layer replaced before wrapping"};
static_assert(std::size(kFaultNames) == kFaults);
constexpr const char* kExtraNames[] = {"logs a result",
                                       "a metric",
                                       "trains a probe",
                                       "evaluates",
                                       "a looking hook",
                                       "clones gradients",
                                       "scales alike",
                                       "clips by nothing",
                                       "trains another model after backward",
                                       "swaps weights and back",
                                       "logs weights",
                                       "a histogram of weights",
                                       "logs gradients",
                                       "averages weights",
                                       "a teacher",
                                       "evaluates without the wrapper",
                                       "evaluates before training",
                                       "evaluates through the wrapper",
                                       "accuracy",
                                       "saves and loads",
                                       "keeps losses",
                                       "catches an error",
                                       "trains without the wrapper's forward",
                                       "catches an error of an evaluation",
                                       "averages a metric",
                                       "a barrier",
                                       "a decision of rank 0"};
static_assert(std::size(kExtraNames) == kExtras);
constexpr const char* kFormNames[] = {"tanh", "own tanh", "sorted", "split", "scaled by a number", "on a thread"};
static_assert(std::size(kFormNames) == kForms);
constexpr const char* kRuleNames[] = {"SGD", "Adam", "RMSprop", "Adagrad", "by hand"};
static_assert(std::size(kRuleNames) == kRules);
constexpr const char* kKindNames[] = {"linear", "affine", "adapter", "experts"};
static_assert(std::size(kKindNames) == kKinds);
constexpr const char* kModeNames[] = {"strict", "unused allowed", "static graph"};
constexpr const char* kSecondNames[] = {"no second wrapper", "a second wrapper in the loss",
                                        "a second wrapper trained after"};

std::string planted_in_words(const char* title, const Planted& fault, int ranks) {
  return fmt::format("  {}: {} at {} on ranks {} in step {}{}\n", title, name(fault.what), fault.layer,
                     ranks_in(fault.ranks, ranks), fault.step, fault.repeats ? " and after" : "");
}

}  // namespace

const char* name(Fault fault) { return kFaultNames[static_cast<size_t>(fault)]; }

std::string in_words(const Spec& spec) {
  std::string text = fmt::format(
      "{} ranks, {} steps of {} micro-batches, {}{}{}, {}, {}, buckets of {} MiB{}, {}; heads {}; frozen {}\n",
      spec.ranks, spec.steps, spec.micro_batches, kRuleNames[static_cast<size_t>(spec.rule)],
      spec.two_optimizers ? " twice" : "", spec.scheduler ? " with a scheduler" : "",
      kModeNames[static_cast<size_t>(spec.mode)], spec.views ? "views" : "copies", spec.bucket_mb,
      spec.own_hook ? ", own hook" : "", kSecondNames[static_cast<size_t>(spec.second)], spec.heads, spec.frozen);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const Layer& layer = spec.layers[i];
    text += fmt::format("  node {} = layer{}(node {}), {}, {}{}\n", i + 1, layer.module, layer.input,
                        kKindNames[static_cast<size_t>(spec.layers[layer.module].kind)],
                        kFormNames[static_cast<size_t>(layer.form)], layer.checkpointed ? ", checkpointed" : "");
  }
  if (spec.shared) text += fmt::format("  the second has layer{} as well\n", *spec.shared);
  if (spec.wrapped_again > 0)
    text += fmt::format("  wrapped again before step {}{}\n", spec.wrapped_again,
                        spec.old_stays ? ", and the old wrapper stays" : "");
  for (const Beside& beside : spec.beside)
    text += fmt::format("  {} at layer {} on ranks {}\n", kExtraNames[static_cast<size_t>(beside.what)], beside.layer,
                        ranks_in(beside.ranks, spec.ranks));
  if (spec.allowed.what != Fault::None) text += planted_in_words("allowed", spec.allowed, spec.ranks);
  return text + planted_in_words("fault", spec.fault, spec.ranks);
}

std::vector<Spec> simpler(const Spec& spec) {
  std::vector<Spec> found;
  const auto offer = [&](auto&& change) {
    Spec other = spec;
    change(other);
    close(other);
    if (is_telling(other) && in_words(other) != in_words(spec)) found.push_back(std::move(other));
  };
  offer([](Spec& other) { other.beside.clear(); });
  for (size_t i = 0; i < spec.beside.size(); ++i)
    offer([&](Spec& other) { other.beside.erase(other.beside.begin() + static_cast<std::ptrdiff_t>(i)); });
  offer([](Spec& other) { other.second = Second::None, other.shared = {}; });
  offer([](Spec& other) { other.shared = {}; });
  offer([](Spec& other) { other.wrapped_again = 0; });
  offer([](Spec& other) { other.old_stays = false; });
  offer([](Spec& other) { other.allowed = {}; });
  offer([](Spec& other) { other.mode = Mode::Strict, other.allowed = {}; });
  // Drops the last layer if nothing else refers to it.
  if (const size_t last = spec.layers.size() - 1; last > 0 && spec.shared != last && spec.fault.layer < last &&
                                                  (spec.allowed.what == Fault::None || spec.allowed.layer < last)) {
    offer([&](Spec& other) {
      other.layers.pop_back();
      std::erase(other.heads, last + 1);
      std::erase(other.frozen, last);
      for (Beside& beside : other.beside)
        beside.layer = std::min(beside.layer, last - 1);
    });
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    offer([&](Spec& other) { other.layers[i].checkpointed = false; });
    offer([&](Spec& other) { other.layers[i].kind = Kind::Linear; });
    offer([&](Spec& other) { other.layers[i].form = Form::Tanh; });
  }
  for (size_t i = 0; i < spec.heads.size() && spec.heads.size() > 1; ++i)
    offer([&](Spec& other) { other.heads.erase(other.heads.begin() + static_cast<std::ptrdiff_t>(i)); });
  if (spec.fault.what != Fault::ThawedLayer) offer([](Spec& other) { other.frozen.clear(); });
  if (spec.fault.what != Fault::LastInNoSync) offer([](Spec& other) { other.micro_batches = 1; });
  offer([](Spec& other) { other.rule = Rule::SGD; });
  offer([](Spec& other) { other.two_optimizers = false; });
  offer([](Spec& other) { other.scheduler = false; });
  offer([](Spec& other) { other.own_hook = false; });
  offer([](Spec& other) { other.views = true; });
  offer([](Spec& other) { other.bucket_mb = 25; });
  offer([](Spec& other) { other.fault.step = other.fault.what == Fault::NotCleared ? 1 : 0; });
  if (const int last = std::max({spec.fault.step, spec.allowed.step, spec.wrapped_again}); spec.steps > 1 + last)
    offer([last](Spec& other) { other.steps = 1 + last; });
  return found;
}

}  // namespace brigade::test::fuzz
