// These programs choose a wrong dtype, or a gradient leaves the range of float16.
#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <limits>

namespace brigade::lab {

// AMP-13: a gradient is infinite on rank 1 alone, of a part that each rank keeps for itself: all skip, and all scales fall.
namespace infinite_on_one_rank {

struct PersonalImpl : nn::Module {
  nn::Linear shared{nullptr}, own{nullptr};
  PersonalImpl() {
    shared = register_module("shared", nn::Linear(4, 4, false));
    own = register_module("own", nn::Linear(4, 4, false));
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x) { return {shared(x), own(x)}; }
};
BRIGADE_MODULE(Personal);

std::vector<Tensor> run(const FaultContext& context) {
  Personal net;
  dist::DDPOptions options = context.options;
  options.parameters_and_buffers_to_ignore = {"own.weight"};
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 && context.rank() == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    const auto [of_shared, of_own] = ddp(rank_batch(context));
    scaler.scale(loss_of(of_shared) + loss_of(of_own) * spike).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  return {net->shared->weight, full({1}, scaler.get_scale())};
}

const AddFault add(Fault{.id = "AMP-13",
                         .name = "infinite_on_one_rank",
                         .title = "an infinite gradient on one rank only: all skip alike",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace infinite_on_one_rank

// AMP-15: the model itself is converted to float16, and a scaler is used as if it were not.
namespace half_precision_parameters {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (!context.fixed) net->to(kFloat16);
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kFloat16, context.fixed);
      loss = loss_of(ddp(rank_batch(context).to(net->a->weight.dtype())));
    }
    scaler.scale(loss).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-15",
                         .name = "half_precision_parameters",
                         .title = "float16 parameters under a scaler",
                         .expected = {.kind = "error",
                                      .words = {"Attempting to unscale FP16 gradients", "'a.weight' of SGD",
                                                "keep the parameters in float32"}},
                         .run = &run});

}  // namespace half_precision_parameters

// AMP-20: gradients travel in float16, finite on every rank, and their sum is not: the scaler skips, and a note says why.
namespace half_precision_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.reduce_dtype = kFloat16;
  // Divided before the cast: whatever the sum, it fits.
  if (context.fixed) options.gradient_predivide_factor = 65536;
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1 << 22});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    if (!scaler.step(optimizer) && context.fixed) throw Error("a step was skipped");
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-20",
                         .name = "half_precision_reduction",
                         .title = "a reduction in float16 overflows, under a scaler",
                         .expected = {.kind = "hook_result",
                                      .cause = "overflow",
                                      .severity = dist::Severity::Note,
                                      .op = "reduce_in_float16",
                                      .words = {"finite on every rank before it", "its range was exceeded"}},
                         .run = &run});

}  // namespace half_precision_reduction

// AMP-21: rank 1 alone runs its forward under autocast.
namespace autocast_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const bool is_on = context.rank() == 1 || context.fixed;
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      context.fault_on_next_line();
      const amp::autocast region(context.device.type, kBFloat16, is_on);
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-21",
                         .name = "autocast_on_one_rank",
                         .title = "autocast on rank 1 only",
                         .expected = {.kind = "autocast_differs",
                                      .ranks = {1},
                                      .cause = "modes_differ",
                                      .severity = dist::Severity::Warning,
                                      .op = "autocast",
                                      .words = {"ran without autocast", "ran under bfloat16 on "}},
                         .run = &run});

}  // namespace autocast_on_one_rank

}  // namespace brigade::lab
