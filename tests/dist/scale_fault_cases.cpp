// One rank finds that its gradients have the wrong scale: no rank steps, and all say why.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/amp/grad_scaler.h>
#include <brigade/dist/checks/values.h>

namespace brigade::test::scale_fault_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using Ddp = dist::DistributedDataParallel<Net>;

bool is_last(const dist::ProcessGroupPtr& group) { return group->rank() == group->size() - 1; }

struct Job {
  dist::ProcessGroupPtr group;
  Net net;
  Ddp ddp;
  optim::SGD optimizer;
  amp::GradScaler scaler{{.init_scale = 1024}};
  explicit Job(const dist::ProcessGroupPtr& of) : group(of), ddp(net, of), optimizer(net->parameters(), {.lr = 0.1}) {}

  void backward(bool scaled) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(batch_of(group->rank(), 0)));
    (scaled ? scaler.scale(loss) : loss).backward();
  }
  // All ranks have to refuse `step`, the correct ones because of what the others report. A correct step works after
  // that. `of_scaler`: the step is one of the scaler, whose iteration has to end.
  std::string refused(const std::function<void()>& step, bool own_fault, const std::string& text, bool of_scaler) {
    const Values before = values_of(net->parameters());
    std::string problem =
        own_fault ? expect_error<autograd::ScalerError>(step, {text, "(not taken)"})
                  : expect_error<dist::ConsistencyError>(step, {text, fmt::format("on rank {}", group->size() - 1),
                                                                "a.weight", "(not taken)", "\ndo:  "});
    if (!problem.empty()) return problem;
    if (values_of(net->parameters()) != before) return "a weight has moved";
    if (of_scaler) scaler.update(1024);
    backward(true);
    if (!scaler.step(optimizer)) return "the right step was skipped";
    if (values_of(net->parameters()) == before) return "the right step has moved nothing";
    return dist::verify_consistency(*group, net).consistent() ? "" : "the ranks differ";
  }
};

std::string check_scaled_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  job.backward(is_last(group));
  return job.refused([&] { job.optimizer.step(); }, is_last(group), "1024 times too large", false);
}
const AddRankCase add_scaled_on_one("one rank scales its loss and steps without the scaler: no rank steps",
                                    &check_scaled_on_one, everywhere({2, 3}));

std::string check_bypassed_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  job.backward(true);
  job.scaler.step(job.optimizer);
  job.scaler.update(1024);
  job.backward(!is_last(group));
  return job.refused([&] { job.scaler.step(job.optimizer); }, is_last(group), "bypassed the scaler", true);
}
const AddRankCase add_bypassed_on_one("one rank's backward bypasses the scaler: no rank steps", &check_bypassed_on_one,
                                      everywhere({2, 3}));

// The other ranks clip between their unscale_() and the step that reports the fault.
std::string check_unscaled_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  job.backward(true);
  job.scaler.step(job.optimizer);
  job.scaler.update(1024);
  job.backward(!is_last(group));
  const auto step = [&] {
    job.scaler.unscale_(job.optimizer);
    optim::clip_grad_norm_(job.net->parameters(), 1.0);
    job.scaler.step(job.optimizer);
  };
  return job.refused(step, is_last(group), "bypassed the scaler", true);
}
const AddRankCase add_unscaled_on_one(
    "unscale_() finds a wrong scale on one rank: the others are informed at their step", &check_unscaled_on_one,
    everywhere({2, 3}));

// The hook of a step runs before the ranks agree: the correct ranks do not step without the other one.
std::string check_unscaled_by_hook_on_one(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  job.optimizer.register_step_pre_hook(
      [&](optim::Optimizer& optimizer, SourceLocation) { job.scaler.unscale_(optimizer); });
  job.scaler.scale(ones({1}, kFloat64));  // puts the scale in place
  job.backward(!is_last(group));
  const Values before = values_of(job.net->parameters());
  const auto step = [&] { job.optimizer.step(); };
  const std::string wrong = is_last(group)
                                ? expect_error<autograd::ScalerError>(step, {"bypassed the scaler"})
                                : expect_error<dist::ConsistencyError>(step, {"bypassed the scaler", "(not taken)"});
  if (!wrong.empty()) return wrong;
  return values_of(job.net->parameters()) == before ? "" : "a weight has moved";
}
const AddRankCase add_unscaled_by_hook_on_one(
    "unscale_() in the hook of a step throws on its rank, and the others are informed", &check_unscaled_by_hook_on_one,
    everywhere({2}));

// Each rank throws its own error, and none waits for another.
std::string check_on_all(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  job.backward(true);
  return job.refused([&] { job.optimizer.step(); }, true, "1024 times too large", false);
}
const AddRankCase add_on_all("all ranks step without the scaler: each throws its own error", &check_on_all,
                             everywhere({2}));

// A hook before the step may unscale, so the scale is checked after the hook.
std::string check_unscaled_by_hook(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Job job(group);
  const Values before = values_of(job.net->parameters());
  job.optimizer.register_step_pre_hook(
      [&](optim::Optimizer& optimizer, SourceLocation) { job.scaler.unscale_(optimizer); });
  job.backward(true);
  job.optimizer.step();
  if (values_of(job.net->parameters()) == before) return "nothing has moved";
  return dist::verify_consistency(*group, job.net).consistent() ? "" : "the ranks differ";
}
const AddRankCase add_unscaled_by_hook("gradients that a hook before the step unscales are right",
                                       &check_unscaled_by_hook, everywhere({2}));

}  // namespace brigade::test::scale_fault_cases
