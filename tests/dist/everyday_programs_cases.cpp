// What everyday programs do: adapters that are merged, an actor that nothing trains, ranks that split their batches.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <algorithm>
#include <optional>

namespace brigade::test::everyday_programs_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

struct AdaptedImpl : nn::Module {
  nn::Linear base{nullptr}, adapter{nullptr}, head{nullptr};
  bool is_merged = false;
  AdaptedImpl() {
    base = register_module("base", nn::Linear(4, 4));
    adapter = register_module("adapter", nn::Linear(4, 4, false));
    head = register_module("head", nn::Linear(4, 3));
    to(kFloat64);
    base->requires_grad_(false);
  }
  Tensor forward(const Tensor& x) { return head(is_merged ? base(x) : base(x) + adapter(x)); }
};
BRIGADE_MODULE(Adapted);

// The merge under no_grad is an update of the base, no use of the adapter.
std::string check_merged(const dist::ProcessGroupPtr& group) {
  Adapted net;
  dist::DistributedDataParallel<Adapted> ddp(net, group);
  const auto train = [&](int step) {
    net->zero_grad();
    loss_of(ddp(batch_of(group->rank(), step))).backward();
  };
  train(0);
  {
    const NoGradGuard no_grad;
    net->base->weight.add_(net->adapter->weight * 2.0);
  }
  net->is_merged = true;
  try {
    train(1);
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    const bool is_right = error.verdicts().size() == 1 && verdict.parameters.at(0).name == "adapter.weight" &&
                          verdict.cause.kind == dist::CauseKind::ModuleNotCalled;
    return is_right ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_merged("an adapter that was merged is not used, whatever merged it", &check_merged,
                             everywhere({2}));

// A backward of one of two losses that keeps the graph for the next.
std::string check_kept(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group);
  const Tensor x = batch_of(group->rank(), 0);
  try {
    static_cast<void>(ddp(x));
    loss_of(brigade::tanh(net->a(x))).backward({.retain_graph = true});
  } catch (const dist::ReductionError& error) {
    const auto is_right = [](const dist::Verdict& each) {
      return each.advice.starts_with("call backward() once, on the sum of the losses");
    };
    return std::ranges::any_of(error.verdicts(), is_right) ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_kept("the advice on a backward that keeps its graph is to sum the losses", &check_kept,
                           everywhere({2}));

enum class Split { Alike, OfMoreSamples, BySum };

// Rank 0 splits its samples into two micro-batches, the others into three.
std::string check_split(const dist::ProcessGroupPtr& group) {
  for (const Split split : {Split::Alike, Split::OfMoreSamples, Split::BySum}) {
    Net net;
    Ddp ddp(net, group);
    const int count = group->rank() == 0 ? 2 : 3;
    for (int micro = 0; micro < count; ++micro) {
      std::optional<Ddp::NoSync> local;
      if (micro + 1 < count) local.emplace(ddp.no_sync());
      const Tensor out = ddp(batch_of(group->rank(), micro, split == Split::OfMoreSamples ? 4 : 12 / count));
      (split == Split::BySum ? sum(square(out)) / 36.0 : loss_of(out) / static_cast<double>(count)).backward();
    }
    const bool is_told = !ddp.advisories().empty() && ddp.advisories()[0].kind == "uneven_micro_batches";
    if (is_told != (split == Split::OfMoreSamples)) return fmt::format("case {}: {}", static_cast<int>(split), is_told);
  }
  return "";
}
const AddRankCase add_split("ranks that split as many samples into other numbers of micro-batches are not reported",
                            &check_split, everywhere({2, 3}));

// The critic's wrapper is reached in each step, the actor's never.
std::string check_actor(const dist::ProcessGroupPtr& group) {
  Net actor, critic;
  Ddp of_actor(actor, group), of_critic(critic, group);
  optim::SGD actor_steps(actor->parameters(), {.lr = 0.1}), critic_steps(critic->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    actor->zero_grad();
    critic->zero_grad();
    const Tensor x = batch_of(group->rank(), step);
    static_cast<void>(of_actor(x));
    loss_of(of_critic(x)).backward();
    critic_steps.step();
    actor_steps.step();
  }
  const bool is_told = std::ranges::any_of(of_actor.advisories(), [](const dist::Verdict& each) {
    return each.kind == "unreached_module" && each.cause.kind == dist::CauseKind::OutputDropped;
  });
  return is_told ? "" : "nothing was said";
}
const AddRankCase add_actor("a wrapper that no backward has ever reached is reported beside one that is reached",
                            &check_actor, everywhere({2}));

}  // namespace brigade::test::everyday_programs_cases
