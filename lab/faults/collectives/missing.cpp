// In these programs some ranks leave out a collective, or come to it too late.
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

namespace brigade::lab {

// COL-01: rank 1 has one batch less.
namespace one_batch_less {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const int batches = context.rank() == 1 && !context.fixed ? 2 : 3;
  for (int step = 0; step < batches; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  context.group->barrier({.description = "end of training"});
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-01",
                         .name = "one_batch_less",
                         .title = "rank 1 has fewer batches",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace one_batch_less

// COL-02: rank 0 evaluates through the wrapper, in training mode.
namespace evaluation_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
    if (context.rank() != 0) continue;
    if (context.fixed) {
      const NoGradGuard no_grad;
      net->eval();
      net(rank_batch(context));
      net->train();
    } else {
      ddp(rank_batch(context));
    }
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-02",
    .name = "evaluation_on_one_rank",
    .title = "rank 0 alone evaluates through the wrapper",
    .expected = {.kind = "collective_mismatch", .ranks = {kAnyRanks}, .cause = "collective_differs"},
    .run = &run});

}  // namespace evaluation_on_one_rank

// COL-13: rank 1 does not come to a barrier.
namespace missing_at_barrier {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  if (context.rank() == 1 && !context.fixed) {
    const dist::Activity busy(*context.group, "writing a checkpoint");
    std::this_thread::sleep_for(std::chrono::milliseconds(2500));
  } else {
    context.group->monitored_barrier(std::chrono::milliseconds(context.fixed ? 30000 : 900));
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-13",
                         .name = "missing_at_barrier",
                         .title = "rank 1 misses a barrier",
                         .expected = {.kind = "collective_timeout", .ranks = {1}, .cause = "rank_behind"},
                         .run = &run,
                         .ranks = 3,
                         .timeout = std::chrono::milliseconds(900)});

}  // namespace missing_at_barrier

// COL-15: rank 1 is slower than the time-out.
namespace slower_than_timeout {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      const dist::Activity loading(*context.group, "loading data");
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
    }
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-15",
                         .name = "slower_than_timeout",
                         .title = "rank 1 loads data for longer than the time-out",
                         .expected = {.kind = "collective_timeout", .ranks = {1}, .cause = "rank_behind"},
                         .run = &run,
                         .timeout = std::chrono::milliseconds(900)});

}  // namespace slower_than_timeout

// COL-16: a module with SyncBatchNorm is skipped on rank 1.
namespace sync_batch_norm_skipped {

struct BranchImpl : NormedImpl {
  bool skip = false;
  Tensor forward(const Tensor& x) { return skip ? layer(x) : norm(layer(x)); }
};
BRIGADE_MODULE(Branch);

std::vector<Tensor> run(const FaultContext& context) {
  Branch net;
  dist::convert_sync_batchnorm(net, context.group);
  auto ddp = wrap(context, net, context.find_unused());
  net->skip = context.rank() == 1 && !context.fixed;
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-16",
                         .name = "sync_batch_norm_skipped",
                         .title = "a SyncBatchNorm skipped on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace sync_batch_norm_skipped

// COL-26: rank 0 alone all-reduces the loss, for its log.
namespace lone_all_reduce {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    loss.backward();
    sgd_step(net->parameters());
    if (step == 1 && (context.rank() == 0 || context.fixed))
      context.group->all_reduce(loss.detach(), {.op = dist::ReduceOp::Avg})->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-26",
                         .name = "lone_all_reduce",
                         .title = "rank 0 alone all-reduces the loss for its log",
                         .expected = {.kind = "collective_mismatch", .ranks = {0}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace lone_all_reduce

}  // namespace brigade::lab
