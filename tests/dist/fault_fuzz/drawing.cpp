// Random programs drawn from a seed.
#include "spec.h"

#include <random>

namespace brigade::test::fuzz {
namespace {

class Drawing {
 public:
  explicit Drawing(uint64_t seed) : random_(seed) {}

  Spec healthy() {
    Spec spec;
    spec.ranks = 2 + below(3);
    layers(spec);
    const size_t count = spec.layers.size();
    spec.mode = one_in(5) ? Mode::UnusedAllowed : one_in(8) ? Mode::StaticGraph : Mode::Strict;
    spec.views = !one_in(3);
    spec.bucket_mb = one_in(2) ? 25 : 1e-4;
    spec.own_hook = one_in(6);
    spec.rule = one_in(2) ? Rule::SGD : static_cast<Rule>(below(kRules));
    spec.two_optimizers = one_in(5);
    spec.scheduler = one_in(5);
    spec.second = one_in(4) ? (one_in(2) ? Second::InLoss : Second::After) : Second::None;
    if (spec.second != Second::None && one_in(2)) spec.shared = spec.layers[static_cast<size_t>(below(count))].module;
    spec.micro_batches = one_in(3) ? 2 + below(2) : 1;
    spec.steps = 2 + below(3);
    spec.wrapped_again = one_in(6) ? 1 + below(static_cast<size_t>(spec.steps - 1)) : 0;
    spec.old_stays = one_in(2);
    for (int i = below(7); i > 0; --i) {
      const auto what = static_cast<Extra>(below(kExtras));
      const uint32_t ranks = is_collective(what) ? (1U << spec.ranks) - 1 : some_ranks(spec.ranks);
      spec.beside.push_back({what, static_cast<size_t>(below(count)), ranks});
    }
    if (spec.mode == Mode::UnusedAllowed && one_in(2)) {
      static constexpr Fault kAllowed[] = {Fault::SkippedLayer, Fault::DetachedResult, Fault::NoGradLayer,
                                           Fault::Threshold,    Fault::ReadAsNumber,   Fault::DroppedHead};
      spec.allowed = planted(spec, kAllowed[below(std::size(kAllowed))]);
      spec.allowed.repeats = one_in(2);
    }
    return spec;
  }

  Planted planted(const Spec& spec) { return planted(spec, static_cast<Fault>(1 + below(kFaults - 1))); }

 private:
  void layers(Spec& spec) {
    const size_t count = 1 + below(6);
    for (size_t i = 0; i < count; ++i) {
      Layer layer;
      // Mostly a chain.
      layer.input = one_in(3) ? static_cast<size_t>(below(i + 1)) : i;
      layer.module = i > 0 && one_in(6) ? spec.layers[static_cast<size_t>(below(i))].module : i;
      layer.kind = one_in(2) ? Kind::Linear : static_cast<Kind>(below(kKinds));
      layer.checkpointed = one_in(8);
      layer.form = one_in(2) ? Form::Tanh : static_cast<Form>(below(kForms));
      spec.layers.push_back(layer);
      if (one_in(5)) spec.heads.push_back(i + 1);
    }
    close(spec);
    for (size_t i = 0; i < count; ++i) {
      if (count > 1 && one_in(8) && spec.layers[i].module == i && spec.frozen.size() + 1 < count)
        spec.frozen.push_back(i);
    }
  }

  Planted planted(const Spec& spec, Fault what) {
    Planted fault{.what = what, .layer = static_cast<size_t>(below(spec.layers.size()))};
    const uint32_t all = (1U << spec.ranks) - 1;
    const uint32_t last = 1U << (spec.ranks - 1);
    fault.ranks = some_ranks(spec.ranks);
    fault.step = below(spec.steps);
    switch (what) {
      case Fault::DroppedHead: fault.layer = spec.heads[static_cast<size_t>(below(spec.heads.size()))]; break;
      case Fault::ReplacedBefore: fault.step = 0, fault.ranks = all; [[fallthrough]];
      case Fault::FrozenLayer:
      case Fault::ReplacedLayer: fault.layer = spec.layers[fault.layer].module; break;
      case Fault::ThawedLayer:
        if (!spec.frozen.empty()) fault.layer = spec.frozen[static_cast<size_t>(below(spec.frozen.size()))];
        break;
      case Fault::ConstantLoss:
        if (fault.ranks == all) fault.ranks = last;
        break;
      case Fault::ScalingHook: [[fallthrough]];
      case Fault::EditedGradient:
        fault.layer = spec.layers[fault.layer].module;
        fault.ranks = 1U << below(spec.ranks);
        break;
      case Fault::OwnGradient:
        fault.layer = spec.layers[fault.layer].module;
        fault.ranks = all;
        break;
      case Fault::OtherSchedule:
      case Fault::OtherLearningRate: fault.ranks = last; break;
      case Fault::LastInNoSync:
      case Fault::SummingHook: fault.ranks = all; break;
      case Fault::NotCleared:
        fault.ranks = all;
        fault.step = 1 + below(spec.steps - 1);
        break;
      case Fault::WrittenWeight:
        fault.layer = spec.layers[fault.layer].module;
        fault.ranks = 1U << below(spec.ranks);
        break;
      case Fault::EarlyStop: fault.step = 1 + below(static_cast<size_t>(spec.steps - 1)); [[fallthrough]];
      case Fault::LoadedWeights:
      case Fault::ClippedGradients:
      case Fault::SkippedStep:
      case Fault::LoneCollective:
      case Fault::CaughtException:
      case Fault::MoreMicroBatches:
      case Fault::Exception: fault.ranks = 1U << below(spec.ranks); break;
      case Fault::IdleExpert:
        for (size_t i = 0; i < spec.layers.size(); ++i) {
          if (spec.layers[i].kind == Kind::Experts) fault.layer = i;
        }
        break;
      default: break;
    }
    if (what == Fault::ScalingHook) fault.step = 0;
    return fault;
  }

  int below(size_t n) { return static_cast<int>(random_() % n); }
  bool one_in(int n) { return below(static_cast<size_t>(n)) == 0; }
  uint32_t some_ranks(int ranks) {
    const uint32_t all = (1U << ranks) - 1;
    return one_in(2) ? all : 1U + static_cast<uint32_t>(below(all));
  }

  std::mt19937_64 random_;
};

}  // namespace

Spec random_spec(uint64_t seed, bool faulty) {
  for (uint64_t attempt = 0;; ++attempt) {
    Drawing drawing(seed * 1000 + attempt);
    Spec spec = drawing.healthy();
    if (faulty) spec.fault = drawing.planted(spec);
    if (is_telling(spec)) return spec;
  }
}

}  // namespace brigade::test::fuzz
