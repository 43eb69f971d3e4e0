// Results of communication hooks: gradients that differ between ranks are reported before the step, and what a hook
// reduces is not taken for averaging by hand.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/groups/coalescing_manager.h>

namespace brigade::test::hook_results_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using Start = std::function<dist::WorkPtr(dist::ProcessGroup&, const dist::GradBucket&)>;

// Averages each gradient by itself, issued together, except the first `left_out`.
dist::WorkPtr average_each(dist::ProcessGroup& group, const dist::GradBucket& bucket, size_t left_out) {
  dist::CoalescingManager together(dist::ProcessGroupPtr(&group, [](dist::ProcessGroup*) {}));
  for (size_t i = left_out; i < bucket.gradients().size(); ++i)
    group.all_reduce(bucket.gradients()[i], {.op = dist::ReduceOp::Avg});
  return together.end();
}

struct Trained {
  Values values;
  std::vector<dist::Verdict> said;
};

Trained train_with(const dist::ProcessGroupPtr& group, const Start& start, double max_norm = 0, int average_every = 0) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  ddp.register_comm_hook(dist::make_comm_hook("mine", start));
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (max_norm > 0) optim::clip_grad_norm_(net->parameters(), max_norm);
    optimizer.step();
    if (average_every > 0 && s % average_every == 0) dist::average_parameters(*group, net->parameters());
  }
  return {values_of(net->parameters()), ddp.advisories()};
}

void check_each_by_itself(const std::string& backend, int ranks) {
  const Values expected = plain_reference(ranks);
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) {
    const Trained trained = train_with(
        group, [](dist::ProcessGroup& g, const dist::GradBucket& bucket) { return average_each(g, bucket, 0); });
    if (!trained.said.empty()) return trained.said[0].message;
    return compare(trained.values, expected);
  });
}
const AddRankCase add_each_by_itself("a hook that reduces each gradient by itself is no average by hand",
                                     &check_each_by_itself, everywhere({2, 3}));

std::string check_left_out(const dist::ProcessGroupPtr& group) {
  for (const double max_norm : {0.0, 0.1}) {  // after clipping all differ, but clipping is not the cause
    const Trained trained = train_with(
        group, [](dist::ProcessGroup& g, const dist::GradBucket& bucket) { return average_each(g, bucket, 2); },
        max_norm);
    if (trained.said.size() != 1) return fmt::format("{} verdicts", trained.said.size());
    const dist::Verdict& verdict = trained.said[0];
    if (verdict.kind != "hook_result" || verdict.cause.kind != dist::CauseKind::ValuesDiffer ||
        verdict.iteration != 1 || verdict.severity != dist::Severity::Warning || verdict.cause.op != "mine")
      return verdict.kind + ": " + verdict.message;
    if (max_norm == 0 && (verdict.parameters.size() != 2 || verdict.parameters[0].name != "c.weight"))
      return fmt::format("{} parameters: {}", verdict.parameters.size(), verdict.message);
  }
  return "";
}
const AddRankCase add_left_out("a hook that leaves a gradient out is reported before the first step, clipped or not",
                               &check_left_out, everywhere({2, 3}));

std::string check_other_options(const dist::ProcessGroupPtr& group) {
  const int rank_of_matrices = group->rank() == 0 ? 1 : 2;
  return expect_error<dist::CollectiveError>(
      [&] {
        train(group, {}, [&](Ddp& ddp) {
          ddp.register_comm_hook(
              dist::powersgd_hook({.matrix_approximation_rank = rank_of_matrices, .min_compression_rate = 0.1}));
        });
      },
      {"the communication hook powersgd sends other values", "register it with the same options on every rank"});
}
const AddRankCase add_other_options("a hook that has other options on one rank is reported as that",
                                    &check_other_options, everywhere({2}));

std::string check_local_on_purpose(const dist::ProcessGroupPtr& group) {
  const Trained trained = train_with(
      group, [](dist::ProcessGroup&, const dist::GradBucket&) { return dist::completed_work(); }, 0, 2);
  return trained.said.empty() ? "" : trained.said[0].message;
}
const AddRankCase add_local_on_purpose("a hook that sends nothing leaves gradients local on purpose",
                                       &check_local_on_purpose, everywhere({2}));

}  // namespace brigade::test::hook_results_cases
