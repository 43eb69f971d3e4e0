// In these controls the ranks do different things, and the program stays correct.
#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/model_averaging.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// OK-17: the ranks have different numbers of batches, inside join().
namespace uneven_batches_in_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  dist::Join join(ddp);
  for (int batch = 0; batch < 2 + context.rank(); ++batch) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  join.finish();
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-17",
                         .name = "uneven_batches_in_join",
                         .title = "join() with uneven inputs",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace uneven_batches_in_join

// OK-20: rank 1 trains a probe on the detached output, between forward and backward.
namespace probe_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  nn::Linear probe(4, 1);
  probe->to(context.device);
  optim::SGD of_probe(probe->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    if (context.rank() == 1) {
      of_probe.zero_grad();
      loss_of(probe(output.detach())).backward();
      of_probe.step();
    }
    loss_of(output).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-20",
                         .name = "probe_on_one_rank",
                         .title = "a probe trained on the detached output on rank 1",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace probe_on_one_rank

// OK-22: local SGD: after two common steps each rank steps by itself, and every second step the models are averaged.
namespace local_sgd {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  ddp.register_comm_hook(dist::post_local_sgd_hook(2));
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  dist::PeriodicModelAverager averager(context.group, 2, 2);
  for (int step = 0; step < 7; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    averager.average_parameters(net);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-22",
                         .name = "local_sgd",
                         .title = "local SGD with a model averager",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace local_sgd

// OK-23: Adam inside an uneven join, as a ZeroRedundancyOptimizer: it steps on every rank, and goes on afterwards.
namespace adam_of_zero_in_uneven_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  dist::ZeroRedundancyOptimizer<optim::Adam> optimizer(net->parameters(), {.lr = 0.1}, context.group);
  const auto train = [&] {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  };
  dist::Join join({ddp, optimizer});
  for (int batch = 0; batch < (context.rank() == 1 ? 2 : 3); ++batch)
    train();
  join.finish();
  train();  // on the last batches of all
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-23",
                         .name = "adam_of_zero_in_uneven_join",
                         .title = "Adam of a ZeroRedundancyOptimizer in an uneven join",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace adam_of_zero_in_uneven_join

// OK-26: rank 0 alone logs the sizes of activations and gradients in hooks, which change nothing.
namespace logging_hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  std::vector<double> log;
  const auto logs = [&log](const Tensor& grad) {
    log.push_back(square(grad).sum().item<float>());
    return Tensor();
  };
  if (context.rank() == 0) net->a->weight.register_hook(logs);
  for (int step = 0; step < 8; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    if (context.rank() == 0) output.register_hook(logs);
    loss_of(output).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-26",
                         .name = "logging_hook_on_one_rank",
                         .title = "hooks that log, on rank 0 only",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace logging_hook_on_one_rank

// OK-27: averaged weights are swapped in for an evaluation, and out again: on all ranks, and once more on rank 0 alone.
namespace averages_swapped_in_and_out {

void swap_values(const Tensor& a, const Tensor& b) {
  const Tensor before = a.detach().clone();
  a.copy_(b);
  b.copy_(before);
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  std::vector<Tensor> averages;
  for (const Tensor& parameter : net->parameters())
    averages.push_back(parameter.detach().clone());
  const auto swap_all = [&] {
    for (size_t i = 0; i < averages.size(); ++i)
      swap_values(net->parameters()[i], averages[i]);
  };
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    const NoGradGuard no_grad;
    for (size_t i = 0; i < averages.size(); ++i)
      averages[i].mul_(0.9).add_(net->parameters()[i], 0.1);
    if (step == 0 || (step == 1 && context.rank() == 0)) {
      swap_all();
      loss_of(net(rank_batch(context))).item<float>();
      swap_all();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-27",
                         .name = "averages_swapped_in_and_out",
                         .title = "averaged weights swapped in and out for an evaluation",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace averages_swapped_in_and_out

// OK-35: each rank measures the size of its own inputs, with broadcast_buffers off.
namespace buffer_of_each_rank {

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
    if (step != 1) continue;
    const NoGradGuard no_grad;
    const Tensor spread = sqrt(mean(square(x), {0}));
    net->spread.copy_(spread);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-35",
                         .name = "buffer_of_each_rank",
                         .title = "a buffer that each rank measures for itself, broadcast_buffers off",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace buffer_of_each_rank

}  // namespace brigade::lab
