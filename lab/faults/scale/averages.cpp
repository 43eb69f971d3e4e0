// In these programs the averaged gradients have a wrong scale.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// SCL-01: a communication hook sums and does not divide.
namespace hook_that_sums {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const dist::ReduceOp op = context.fixed ? dist::ReduceOp::Avg : dist::ReduceOp::Sum;
  ddp.register_comm_hook(dist::make_comm_hook("mine", [op](dist::ProcessGroup& group, const dist::GradBucket& bucket) {
    return group.all_reduce(bucket.buffer(), {.op = op});
  }));
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "SCL-01",
    .name = "hook_that_sums",
    .title = "a communication hook that forgets to divide",
    .expected = {.kind = "hook_result", .parameters = {"a.weight", "b.weight"}, .cause = "wrong_scale"},
    .run = &run});

}  // namespace hook_that_sums

// SCL-02: rank 0 has 7 samples, the others have 1, each takes the mean.
namespace batches_of_other_sizes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context, context.rank() == 0 && !context.fixed ? 7 : 1))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-02",
                         .name = "batches_of_other_sizes",
                         .title = "batches of 7 and 1, mean losses",
                         .expected = {.kind = "uneven_batches",
                                      .ranks = {kAnyRanks},
                                      .cause = "uneven_batches",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace batches_of_other_sizes

// SCL-03: a layer is used on some ranks only: the mean counts the others as zero, by design.
namespace layer_used_on_some_ranks {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = context.rank() == 1;
  auto ddp = wrap(context, net, context.find_unused());
  loss_of(ddp(rank_batch(context))).backward();
  // To be shown, not scolded: the users of each parameter are known on every rank.
  if (ddp.reducer().past().users[1] != context.group->size() - 1) throw ValueError("the number of users is not known");
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-03",
                         .name = "layer_used_on_some_ranks",
                         .title = "a layer used on one rank only, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace layer_used_on_some_ranks

// SCL-06: a gradient hook multiplies by 100 on rank 1.
namespace gradient_hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 && !context.fixed)
    net->a->weight.register_hook([](const Tensor& grad) { return grad * 100.0; });
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-06",
                         .name = "gradient_hook_on_one_rank",
                         .title = "a gradient hook times 100 on rank 1",
                         .expected = {.kind = "gradient_outlier",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "hook_differs",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace gradient_hook_on_one_rank

// SCL-10: each rank clips its own gradients, under no_sync, before they are averaged.
namespace clipping_before_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  {
    const auto no_sync = ddp.no_sync();
    loss_of(ddp(rank_batch(context))).backward();
    if (!context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  }
  loss_of(ddp(rank_batch(context))).backward();
  if (context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-10",
                         .name = "clipping_before_reduction",
                         .title = "clipping by the local norm before the reduction",
                         .expected = {.kind = "edited_before_reduction",
                                      .ranks = {kAnyRanks},
                                      .cause = "edited_by_hand",
                                      .severity = dist::Severity::Warning,
                                      .op = "clip_grad_norm_"},
                         .run = &run});

}  // namespace clipping_before_reduction

// SCL-11: gradients that the wrapper has averaged are summed over the ranks by hand.
namespace summed_by_hand_too {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  for (const Tensor& parameter : net->parameters()) {
    if (!context.fixed) context.group->all_reduce(parameter.grad())->wait();
  }
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-11",
                         .name = "summed_by_hand_too",
                         .title = "averaged gradients summed by hand once more",
                         .expected = {.kind = "averaged_twice",
                                      .ranks = {kAnyRanks},
                                      .cause = "reduced_twice",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace summed_by_hand_too

// SCL-12: rank 1 gathers one micro-batch more than the others.
namespace micro_batches_by_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const int micro_batches = context.rank() == 1 && !context.fixed ? 3 : 2;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    for (int micro = 0; micro < micro_batches; ++micro) {
      std::optional<decltype(ddp)::NoSync> local;
      if (micro + 1 < micro_batches) local.emplace(ddp.no_sync());
      (loss_of(ddp(rank_batch(context))) / static_cast<double>(micro_batches)).backward();
    }
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-12",
                         .name = "micro_batches_by_rank",
                         .title = "another number of micro-batches on rank 1",
                         .expected = {.kind = "uneven_micro_batches",
                                      .ranks = {kAnyRanks},
                                      .cause = "uneven_batches",
                                      .file_and_line = false,
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace micro_batches_by_rank

// SCL-17: rank 1 does not divide its loss by the number of ranks' parts, as the others do.
namespace loss_not_divided_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    Tensor loss = loss_of(ddp(rank_batch(context)));
    context.fault_on_next_line();
    if (context.rank() != 1 || context.fixed) loss = loss / 4.0;
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-17",
                         .name = "loss_not_divided_on_one_rank",
                         .title = "a loss that rank 1 does not divide",
                         .expected = {.kind = "uneven_factors",
                                      .ranks = {kAnyRanks},
                                      .cause = "wrong_scale",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace loss_not_divided_on_one_rank

}  // namespace brigade::lab
