// In these programs step(), update() or the schedule of a scaled loop runs at a wrong time.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>
#include <limits>
#include <optional>

namespace brigade::lab {

// AMP-03: update() after each of two optimizers; the scale grows between them.
namespace update_after_each_optimizer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD of_a(net->a->parameters(), {.lr = 0.1});
  optim::SGD of_b(net->b->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  for (int step = 0; step < 3; ++step) {
    of_a.zero_grad();
    of_b.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.step(of_a);
    if (!context.fixed && step == 1) {
      context.fault_on_next_line();
      scaler.update();
    }
    scaler.step(of_b);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-03",
                         .name = "update_after_each_optimizer",
                         .title = "update() after each optimizer, and the scale grows between",
                         .expected = {.kind = "error",
                                      .words = {"'b.weight'", "was made at another scale: scale 1024",
                                                "would be unscaled by 2048; update() at", "has set the scale to 2048",
                                                "call update() once per iteration"}},
                         .run = &run});

}  // namespace update_after_each_optimizer

// AMP-05: update() is missing in a loop that calls unscale_: the second iteration unscales "after step".
namespace update_missing_with_unscale {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (context.fixed) scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-05",
    .name = "update_missing_with_unscale",
    .title = "update() is missing, unscale_ is called",
    .expected = {.kind = "error",
                 .words = {"unscale_() is being called after step()", "SGD", "update() has not been called yet",
                           "call update() at the end of every iteration"}},
    .run = &run});

}  // namespace update_missing_with_unscale

// AMP-06: update() is missing: the second iteration steps again.
namespace update_missing {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (context.fixed) scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-06",
                         .name = "update_missing",
                         .title = "update() is missing",
                         .expected = {.kind = "error",
                                      .words = {"step() has already been called since the last update()",
                                                "it has stepped at", "call update() at the end of every iteration"}},
                         .run = &run});

}  // namespace update_missing

// AMP-09: a loop that leaves out a step with infinite gradients by itself, and update() with it.
namespace update_skipped_with_the_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    scaler.scale(loss_of(ddp(rank_batch(context))) * spike).backward();
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    const double norm = optim::clip_grad_norm_(net->parameters(), 1.0);
    if (!std::isfinite(norm) && !context.fixed) continue;
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-09",
    .name = "update_skipped_with_the_step",
    .title = "a skipped step also skips update()",
    .expected = {.kind = "error",
                 .words = {"unscale_() has already been called on this optimizer since the last "
                           "update()",
                           "it was unscaled at", "the last update() was at", "update() at the end of every iteration"}},
    .run = &run});

}  // namespace update_skipped_with_the_step

// AMP-11: both optimizers of a GAN step, although the loss of this iteration reaches the discriminator alone.
namespace optimizer_without_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan gan;
  auto ddp = wrap(context, gan, context.find_unused());
  optim::Adam of_generator(gan->generator->parameters(), {.lr = 0.1});
  optim::Adam of_discriminator(gan->discriminator->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    of_generator.zero_grad();
    of_discriminator.zero_grad();
    const bool of_fake = step == 0;  // the discriminator's turn
    scaler.scale(real_or_fake(ddp(rank_batch(context), of_fake), !of_fake)).backward();
    if (!of_fake || !context.fixed) {
      context.fault_on_next_line();
      scaler.step(of_generator);
    }
    scaler.step(of_discriminator);
    scaler.update();
  }
  return gan->parameters();
}

const AddFault add(Fault{.id = "AMP-11",
                         .name = "optimizer_without_gradients",
                         .title = "an optimizer without gradients",
                         .expected = {.kind = "error",
                                      .words = {"No inf checks were recorded for this optimizer", "(Adam with",
                                                "'generator.weight'", "no backward since they were cleared"}},
                         .run = &run});

}  // namespace optimizer_without_gradients

// AMP-12: update() after every micro-batch, the step after the last of them.
namespace update_without_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int micro = 0; micro < 4; ++micro) {
    const bool is_last = micro % 2 == 1;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      scaler.scale(loss_of(ddp(rank_batch(context))) / 2.0).backward();
    }
    if (is_last) {
      scaler.step(optimizer);
      optimizer.zero_grad();
    }
    if (is_last || !context.fixed) {
      context.fault_on_next_line();
      scaler.update();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-12",
    .name = "update_without_step",
    .title = "update() without a step",
    .expected = {.kind = "error",
                 .words = {"No inf checks were recorded prior to update", "no optimizer was stepped or unscaled",
                           "call scaler.step(optimizer) before scaler.update()"}},
    .run = &run});

}  // namespace update_without_step

// AMP-19: the learning rate's schedule moves on although the scaler has skipped the step.
namespace schedule_moves_on {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  optim::StepLR schedule(optimizer, 1, 0.5);
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    scaler.scale(loss_of(ddp(rank_batch(context))) * spike).backward();
    context.fault_on_next_line();
    const bool has_stepped = scaler.step(optimizer);
    scaler.update();
    if (has_stepped || !context.fixed) {
      context.fault_on_next_line();
      schedule.step();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-19",
                         .name = "schedule_moves_on",
                         .title = "a schedule moves on after a skipped step",
                         .expected = {.kind = "warning",
                                      .file_and_line = false,
                                      .severity = dist::Severity::Warning,
                                      .words = {"StepLR.step()", "was skipped, since gradients were not finite",
                                                "if (scaler.step(optimizer)) scheduler.step()"}},
                         .run = &run});

}  // namespace schedule_moves_on

}  // namespace brigade::lab
