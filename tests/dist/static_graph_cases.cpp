// static_graph with a path in the plan along which no gradient comes: only backward finds a cut inside a checkpoint.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::static_graph_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// `cuts` detaches what b adds inside a checkpoint.
struct CutNetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr}, c{nullptr};
  bool cuts = false;
  CutNetImpl() {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    c = register_module("c", nn::Linear(4, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const auto segment = [this](const Tensor& in) {
      const Tensor added = brigade::tanh(b(in));
      return in + (cuts ? added.detach() : added);
    };
    return c(autograd::checkpoint(segment, brigade::tanh(a(x))));
  }
};
BRIGADE_MODULE(CutNet);

// `cuts`: in that step, on that rank. With micro-batches two backwards come before each step.
std::string train_with(const dist::ProcessGroupPtr& group, const std::function<bool(int step, int rank)>& cuts,
                       bool micro_batches = false) {
  manual_seed(1);
  CutNet net;
  dist::DistributedDataParallel<CutNet> ddp(net, group, {.static_graph = true});
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int s = 0; s < 4; ++s) {
    net->cuts = cuts(s, group->rank());
    optimizer.zero_grad();
    if (micro_batches) {
      const auto local = ddp.no_sync();
      loss_of(ddp(batch_of(group->rank(), 10 + s))).backward();
    }
    try {
      loss_of(ddp(batch_of(group->rank(), s))).backward();
    } catch (const dist::ReductionError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      std::string text = fmt::format("step {}: {} {}", s, verdict.kind, fmt::join(verdict.ranks, ","));
      for (const dist::ParameterVerdict& parameter : verdict.parameters)
        text += " " + parameter.name;
      return text;
    }
    optimizer.step();
  }
  return ddp.advisories().empty() ? "" : ddp.advisories()[0].message;
}

std::string check_cut_in_all_steps(const dist::ProcessGroupPtr& group) {
  for (const bool micro_batches : {false, true}) {
    const std::string found = train_with(
        group, [](int, int) { return true; }, micro_batches);
    if (!found.empty()) return found;
  }
  return "";
}
const AddRankCase add_cut_in_all_steps(
    "static_graph: a path that is cut inside a checkpoint in every step is the same graph", &check_cut_in_all_steps,
    everywhere({2}));

std::string check_cut_comes_and_goes(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const std::string expected = fmt::format("step 2: static_graph_changed {} b.weight b.bias", last);
  const std::string comes = train_with(group, [&](int s, int rank) { return s == 2 && rank == last; });
  if (comes != expected) return "a cut that comes: '" + comes + "'";
  const std::string goes = train_with(group, [&](int s, int rank) { return s != 2 || rank != last; });
  return goes == expected ? "" : "a cut that goes: '" + goes + "'";
}
const AddRankCase add_cut_comes_and_goes(
    "static_graph: a cut inside a checkpoint that comes, or goes, on one rank is reported in its backward",
    &check_cut_comes_and_goes, everywhere({2, 3}));

}  // namespace brigade::test::static_graph_cases
