// These controls train in mixed precision in a correct way.
#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// OK-28: the scale of the start is too large for float16: the first steps are skipped until it fits.
namespace scale_backs_off {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 1e-3});
  optim::StepLR schedule(optimizer, 2, 0.5);
  amp::GradScaler scaler;
  int skipped = 0;
  for (int step = 0; step < 12; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kFloat16);
      loss = loss_of(ddp(rank_batch(context))) * 500.0;
    }
    scaler.scale(loss).backward();
    if (scaler.step(optimizer)) {
      schedule.step();
    } else {
      ++skipped;
    }
    scaler.update();
  }
  if (skipped == 0 || skipped > 10) throw Error("{} of 12 steps were skipped", skipped);
  return {net->a->weight, net->b->weight, full({1}, scaler.get_scale())};
}

const AddFault add(Fault{.id = "OK-28",
                         .name = "scale_backs_off",
                         .title = "a scale that is too large at first and backs off",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace scale_backs_off

// OK-29: the scale grows while training goes on.
namespace scale_grows {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 0.1);
    scaler.step(optimizer);
    scaler.update();
  }
  if (scaler.get_scale() != 4096) throw Error("the scale is {}", scaler.get_scale());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-29", .name = "scale_grows", .title = "a scale that grows", .expected = {.detected = false}, .run = &run});

}  // namespace scale_grows

// OK-30: all gradients of one of two optimizers are zero: they are gradients, and finite.
namespace optimizer_of_zero_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  optim::SGD of_trunk(net->t->parameters(), {.lr = 0.1});
  std::vector<Tensor> heads{net->h1->weight, net->h2->weight};
  optim::SGD of_heads(heads, {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int step = 0; step < 3; ++step) {
    // The heads count for nothing at first.
    const double weight = step < 2 ? 0.0 : 1.0;
    of_trunk.zero_grad();
    of_heads.zero_grad();
    const auto [first, second] = ddp(rank_batch(context));
    scaler.scale((loss_of(first) + loss_of(second)) * weight).backward();
    scaler.step(of_trunk);
    scaler.step(of_heads);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-30",
                         .name = "optimizer_of_zero_gradients",
                         .title = "optimizers whose gradients are all zero, under a scaler",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace optimizer_of_zero_gradients

// OK-31: two optimizers, one scaler, one update() after both.
namespace two_optimizers_one_update {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::Adam of_a(net->a->parameters(), {.lr = 0.01});
  optim::SGD of_b(net->b->parameters(), {.lr = 0.1, .momentum = 0.9});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1, .fused_step = true});
  for (int step = 0; step < 3; ++step) {
    of_a.zero_grad();
    of_b.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.step(of_a);
    scaler.unscale_(of_b);
    optim::clip_grad_value_(net->b->parameters(), 0.1);
    scaler.step(of_b);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-31",
                         .name = "two_optimizers_one_update",
                         .title = "two optimizers, one update()",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace two_optimizers_one_update

// OK-32: a penalty on the gradients of a scaled loss, which the program divides by the scale itself.
namespace penalty_of_scaled_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    const std::vector<Tensor> scaled = autograd::grad(scaler.scale(loss), net->parameters(), {.create_graph = true});
    const double inverse = 1 / scaler.get_scale();
    const Tensor penalty = square(scaled[0] * inverse).sum() + square(scaled[1] * inverse).sum();
    scaler.scale(loss + penalty).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-32",
                         .name = "penalty_of_scaled_gradients",
                         .title = "a penalty on gradients of a scaled loss",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace penalty_of_scaled_gradients

// OK-33: micro-batches of one scale under no_sync, then one unscale_, one step, one update().
namespace accumulation_under_scaler {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int micro = 0; micro < 6; ++micro) {
    const bool is_last = micro % 3 == 2;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      scaler.scale(loss_of(ddp(rank_batch(context))) / 3.0).backward();
    }
    if (!is_last) continue;
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 0.1);
    scaler.step(optimizer);
    scaler.update();
    optimizer.zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-33",
                         .name = "accumulation_under_scaler",
                         .title = "accumulation under a scaler, with one unscale_ at its end",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace accumulation_under_scaler

// OK-34: autocast in bfloat16, which needs no scaler.
namespace autocast_without_scaler {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::AdamW optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(context.device.type, kBFloat16);
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    optim::clip_grad_norm_(net->parameters(), 0.1);
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-34",
                         .name = "autocast_without_scaler",
                         .title = "autocast in bfloat16, without a scaler",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace autocast_without_scaler

}  // namespace brigade::lab
