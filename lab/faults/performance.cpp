// These programs train correctly, and waste time.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

namespace brigade::lab {

// PERF-01: find_unused_parameters is on, and nothing is unused.
namespace nothing_unused {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net, context.fixed ? context.options : context.find_unused());
  for (int step = 0; step < 12; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-01",
                         .name = "nothing_unused",
                         .title = "find_unused_parameters on, nothing unused",
                         .expected = {.kind = "nothing_unused", .cause = "wasteful", .severity = dist::Severity::Note},
                         .run = &run});

}  // namespace nothing_unused

// PERF-02: no_sync round backward only: no collective runs inside it.
namespace no_sync_round_backward_only {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < 4; ++micro) {
      const Tensor loss = loss_of(ddp(rank_batch(context)));
      if (micro < 3) {
        const uint64_t before = ddp.reducer().past().collectives;
        const auto no_sync = ddp.no_sync();
        loss.backward();
        if (ddp.reducer().past().collectives != before) throw ValueError("collectives ran under no_sync");
      } else {
        loss.backward();
      }
    }
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-02",
                         .name = "no_sync_round_backward_only",
                         .title = "no_sync round backward only",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace no_sync_round_backward_only

// PERF-03: a backward keeps its graph, and no other backward needs it.
namespace graph_kept_for_nothing {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear generator(4, 4);
  nn::Linear discriminator(4, 1);
  discriminator->to(context.device);
  auto g = wrap(context, generator);
  dist::DistributedDataParallel d(discriminator, context.group, context.options);
  const Tensor fake = brigade::tanh(g(rank_batch(context)));
  real_or_fake(d(fake.detach()), false).backward({.retain_graph = !context.fixed});
  sgd_step(discriminator->parameters());
  real_or_fake(d(fake), true).backward();
  sgd_step(generator->parameters());
  return generator->parameters();
}

const AddFault add(Fault{.id = "PERF-03",
                         .name = "graph_kept_for_nothing",
                         .title = "a needless retain_graph",
                         .expected = {.kind = "needless_retain_graph",
                                      .ranks = {kAnyRanks},
                                      .cause = "wasteful",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace graph_kept_for_nothing

// PERF-05: rank 1 is slow in its backward.
namespace slow_rank {

struct SlowImpl : PairImpl {
  bool slow = false;
  Tensor forward(const Tensor& x) {
    const Tensor middle = relu(a(x));
    if (slow) {
      middle.register_hook([](const Tensor&) -> Tensor {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        return {};
      });
    }
    return b(middle);
  }
};
BRIGADE_MODULE(Slow);

std::vector<Tensor> run(const FaultContext& context) {
  Slow net;
  net->slow = context.rank() == 1 && !context.fixed;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 6; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-05",
                         .name = "slow_rank",
                         .title = "rank 1 is slow in backward",
                         .expected = {.kind = "slow_rank",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "slow",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace slow_rank

// PERF-06: a parameter is laid out otherwise than its slot in the bucket.
namespace other_layout_than_slot {

struct TransposedImpl : nn::Module {
  Tensor weight;
  TransposedImpl(bool contiguous, Device device) {
    const Tensor values = randn({3, 4}, {kFloat32, device});
    weight = register_parameter("weight", contiguous ? values.t().contiguous() : values.t());
  }
  Tensor forward(const Tensor& x) { return matmul(x, weight); }
};
BRIGADE_MODULE(Transposed);

std::vector<Tensor> run(const FaultContext& context) {
  Transposed net(context.fixed, context.device);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  return {net->weight.grad()};
}

const AddFault add(Fault{.id = "PERF-06",
                         .name = "other_layout_than_slot",
                         .title = "a parameter with other strides than its bucket",
                         .expected = {.kind = "strides_differ",
                                      .parameters = {"weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "wasteful",
                                      .severity = dist::Severity::Note},
                         .run = &run});

}  // namespace other_layout_than_slot

// PERF-07: gradients that the wrapper has averaged are averaged by hand once more: right, and all bytes go twice.
namespace averaged_by_hand_too {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  for (const Tensor& parameter : net->parameters()) {
    if (!context.fixed) context.group->all_reduce(parameter.grad(), {.op = dist::ReduceOp::Avg})->wait();
  }
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-07",
                         .name = "averaged_by_hand_too",
                         .title = "gradients averaged by hand and by the wrapper",
                         .expected = {.kind = "averaged_twice",
                                      .ranks = {kAnyRanks},
                                      .cause = "reduced_twice",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace averaged_by_hand_too

// PERF-08: all ranks train on the same data (no sampler): more of them do not help.
namespace same_data_everywhere {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 12; ++step) {
    const int batch = context.fixed ? step * context.group->size() + context.rank() : step;
    RandomGenerator generator(static_cast<uint64_t>(batch));
    optimizer.zero_grad();
    loss_of(ddp(randn({8, 4}, {kFloat32, context.device}, &generator))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "PERF-08",
    .name = "same_data_everywhere",
    .title = "all ranks train on the same data",
    .expected = {.kind = "same_batches", .cause = "same_batches", .severity = dist::Severity::Warning},
    .run = &run});

}  // namespace same_data_everywhere

}  // namespace brigade::lab
