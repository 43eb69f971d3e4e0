// In these programs buffers, or the batch norms that use them, differ between the ranks.
#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// DIV-19: batch norm, and broadcast_buffers off.
namespace buffers_not_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  dist::DDPOptions options = context.options;
  options.broadcast_buffers = context.fixed;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-19",
                         .name = "buffers_not_broadcast",
                         .title = "batch norm with broadcast_buffers off",
                         .expected = {.kind = "buffers_differ",
                                      .parameters = {"norm.running_mean", "norm.running_var"},
                                      .ranks = {kAnyRanks},
                                      .cause = "values_differ",
                                      .module = "norm",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace buffers_not_broadcast

// DIV-20: batch norm, and the state is read before the next broadcast.
namespace buffers_read_before_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  if (context.fixed) {
    dist::broadcast_coalesced(*context.group, net->buffers(), 0,
                              {dist::Phase::Inspection, dist::Name("buffers before they are saved")});
  }
  dist::verify_consistency(*context.group, net).raise_if_inconsistent();
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-20",
                         .name = "buffers_read_before_broadcast",
                         .title = "buffers read between a forward and the next broadcast",
                         .expected = {.kind = "buffers_differ",
                                      .parameters = {"norm.running_mean", "norm.running_var"},
                                      .ranks = {kAnyRanks},
                                      .cause = "values_differ",
                                      .module = "norm"},
                         .run = &run});

}  // namespace buffers_read_before_broadcast

// DIV-27: rank 1 alone measures the size of its inputs again and writes it to a buffer, with broadcast_buffers off.
namespace buffer_replaced_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  ScaledInputs net;
  dist::DDPOptions options = context.options;
  options.broadcast_buffers = false;
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    optimizer.zero_grad();
    loss_of(ddp(x)).backward();
    optimizer.step();
    if (step != 1 || (context.rank() != 1 && !context.fixed)) continue;
    const NoGradGuard no_grad;
    const Tensor spread = sqrt(mean(square(x), {0}));
    if (context.fixed) context.group->all_reduce(spread, {.op = dist::ReduceOp::Avg})->wait();
    net->spread.copy_(spread);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-27",
                         .name = "buffer_replaced_on_one_rank",
                         .title = "a buffer that rank 1 alone has measured again, broadcast_buffers off",
                         .expected = {.kind = "buffers_written",
                                      .parameters = {"spread"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .severity = dist::Severity::Warning,
                                      .op = "copy_"},
                         .run = &run});

}  // namespace buffer_replaced_on_one_rank

// DIV-29: rank 0 evaluates alone and does not call train() afterwards: its batch norm goes on in evaluation.
namespace left_in_evaluation_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context)) - 1.0).backward();
    optimizer.step();
    if (step != 1 || context.rank() != 0) continue;
    const NoGradGuard no_grad;
    net->eval();
    loss_of(net(rank_batch(context))).item<float>();
    if (context.fixed) net->train();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-29",
                         .name = "left_in_evaluation_on_one_rank",
                         .title = "rank 0 evaluates, and does not call train() again",
                         .expected = {.kind = "modes_differ",
                                      .ranks = {0},
                                      .cause = "modes_differ",
                                      .module = "norm",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace left_in_evaluation_on_one_rank

}  // namespace brigade::lab
