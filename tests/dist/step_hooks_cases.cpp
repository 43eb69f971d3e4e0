// Hooks of an optimizer that change gradients and weights around a step: the ranks compare the changes before the step.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/checks/values.h>

namespace brigade::test::step_hooks_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// `clips`: on this rank, before each step, as a hook or by hand.
Values train_clipped(const dist::ProcessGroupPtr& group, bool clips, bool by_hook) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  const auto clip = [&](SourceLocation where) { optim::clip_grad_norm_(net->parameters(), 0.1, {}, where); };
  if (clips && by_hook) optimizer.register_step_pre_hook([&](optim::Optimizer&, SourceLocation where) { clip(where); });
  for (int s = 0; s < kSteps; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (clips && !by_hook) clip(SourceLocation::current());
    optimizer.step();
  }
  return values_of(net->parameters());
}

std::string check_on_one(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  try {
    train_clipped(group, group->rank() == last, true);
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    const bool right = verdict.kind == "gradients_edited" && verdict.cause.op == "clip_grad_norm_" &&
                       verdict.ranks == std::vector<int>{last} && verdict.parameters.size() == 6;
    return right ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_on_one("a hook that clips before the step on one rank is found before anything has moved",
                             &check_on_one, everywhere({2, 3}));

// In the step of a loss scaler, too.
std::string check_scaled(const dist::ProcessGroupPtr& group) {
  for (const bool on_all : {true, false}) {
    manual_seed(1);
    nn::Linear net(4, 3);
    dist::DistributedDataParallel ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    amp::GradScaler scaler({.init_scale = 64});
    if (on_all || group->rank() == group->size() - 1) {
      optimizer.register_step_pre_hook(
          [&](optim::Optimizer&, SourceLocation where) { optim::clip_grad_norm_(net->parameters(), 0.1, {}, where); });
    }
    const auto step = [&] {
      scaler.scale(loss_of(ddp(batch_of(group->rank(), 0).to(kFloat32)))).backward();
      scaler.step(optimizer);
      scaler.update();
    };
    if (!on_all) return expect_error<dist::ConsistencyError>(step, {"clip_grad_norm_ at", "(not taken)"});
    step();
    if (!dist::verify_consistency(*group, net).consistent()) return "the ranks differ";
  }
  return "";
}
const AddRankCase add_scaled("a hook that clips before the step of a scaler on one rank is found", &check_scaled,
                             everywhere({2, 3}));

std::string check_on_all(const dist::ProcessGroupPtr& group) {
  return compare(train_clipped(group, true, true), train_clipped(group, true, false));
}
const AddRankCase add_on_all("a hook that clips before the step on every rank does what a call does", &check_on_all,
                             everywhere({2, 3}));

}  // namespace brigade::test::step_hooks_cases
