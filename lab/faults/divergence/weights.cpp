// In these programs the ranks register, load or write different weights.
#include <brigade/core/device_runtime.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>

namespace brigade::lab {

// DIV-16: an averaged teacher moves by a decay that depends on the rank.
namespace teacher_decay_by_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  dist::DDPOptions options = context.options;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 3; ++step) {
    ddp(rank_batch(context)).backward();
    sgd_step(net->student->parameters());
    const NoGradGuard no_grad;
    const double decay = context.rank() == 1 && !context.fixed ? 0.9 : 0.99;
    net->teacher->weight.mul_(decay).add_(net->student->weight, 1 - decay);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-16",
                         .name = "teacher_decay_by_rank",
                         .title = "an averaged teacher with another decay on rank 1",
                         .expected = {.kind = "parameters_differ",
                                      .parameters = {"teacher.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .module = "teacher"},
                         .run = &run});

}  // namespace teacher_decay_by_rank

// DIV-17: rank 1 registers its layers in another order (as a hash map would).
namespace layers_in_other_order {

struct OrderedImpl : nn::Module {
  nn::Linear enc{nullptr}, dec{nullptr};
  explicit OrderedImpl(bool reversed) {
    enc = nn::Linear(4, 4, false);
    dec = nn::Linear(4, 4, false);
    if (reversed) register_module("dec", dec);
    register_module("enc", enc);
    if (!reversed) register_module("dec", dec);
  }
  Tensor forward(const Tensor& x) { return dec(enc(x)); }
};
BRIGADE_MODULE(Ordered);

std::vector<Tensor> run(const FaultContext& context) {
  Ordered net(context.rank() == 1 && !context.fixed);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-17",
                         .name = "layers_in_other_order",
                         .title = "registration order differs on rank 1",
                         .expected = {.kind = "model_mismatch",
                                      .parameters = {"dec.weight", "enc.weight"},
                                      .ranks = {1},
                                      .cause = "model_differs"},
                         .run = &run});

}  // namespace layers_in_other_order

// DIV-21: a parameter that every rank computes for itself, with a kernel that is not deterministic on rank 1.
namespace kernel_not_deterministic {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  dist::DDPOptions options = context.options;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 3; ++step) {
    ddp(rank_batch(context)).backward();
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      const Tensor& weight = net->teacher->weight;
      std::vector<float> values = weight.to_vector<float>();
      values[5] = std::nextafter(values[5], 10.0F);
      copy_bytes(weight.raw_data(), context.device, values.data(), kCPU, weight.nbytes());
    }
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-21",
    .name = "kernel_not_deterministic",
    .title = "a replicated parameter one ulp off on rank 1",
    .expected = {.kind = "parameters_differ", .parameters = {"teacher.weight"}, .ranks = {1}, .cause = "values_differ"},
    .run = &run});

}  // namespace kernel_not_deterministic

// DIV-22: rank 1 alone loads the best checkpoint and trains on.
namespace checkpoint_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  nn::Named<Tensor> best;
  for (const auto& [name, tensor] : net->state_dict())
    best.emplace_back(name, tensor.clone());
  for (int step = 0; step < 3; ++step) {
    const bool is_worse = step == 2;  // by its own validation loss
    if (is_worse && (context.rank() == 1 || context.fixed)) net->load_state_dict(best);
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-22",
                         .name = "checkpoint_on_one_rank",
                         .title = "a checkpoint loaded on rank 1 only",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .op = "load_state_dict"},
                         .run = &run});

}  // namespace checkpoint_on_one_rank

// DIV-24: rank 0 swaps averaged weights in, to evaluate, and does not swap them back.
namespace averages_not_swapped_back {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const Tensor average = net->b->weight.detach().clone();
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    const NoGradGuard no_grad;
    average.mul_(0.9).add_(net->b->weight, 0.1);
    if (step != 1 || context.rank() != 0) continue;
    const Tensor trained = net->b->weight.clone();
    net->b->weight.copy_(average);
    loss_of(net(rank_batch(context))).item<float>();
    if (context.fixed) net->b->weight.copy_(trained);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-24",
                         .name = "averages_not_swapped_back",
                         .title = "averaged weights swapped in on rank 0, and not back",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"b.weight"},
                                      .ranks = {0},
                                      .cause = "values_differ",
                                      .module = "b",
                                      .op = "copy_"},
                         .run = &run});

}  // namespace averages_not_swapped_back

// DIV-28: a kernel of the user's own writes to a weight on rank 1; the version counts it, no line is known.
namespace written_through_pointer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    if (step == 1 && (context.rank() == 1 || context.fixed)) {
      kernels::fill(net->b->weight, 0.25);
      net->b->weight.bump_version();
    }
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-28",
                         .name = "written_through_pointer",
                         .title = "a weight written through its pointer on rank 1",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"b.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .module = "b",
                                      .file_and_line = false,
                                      .op = "bump_version"},
                         .run = &run});

}  // namespace written_through_pointer

}  // namespace brigade::lab
