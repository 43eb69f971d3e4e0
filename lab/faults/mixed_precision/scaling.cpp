// In these programs a loss is not scaled, or gradients are unscaled at a wrong time.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// AMP-01: an optimization loop written by hand: a backward without the scaler, which then is to unscale.
namespace plain_backward {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    if (context.fixed) {
      scaler.scale(loss).backward();
    } else {
      context.fault_on_next_line();
      loss.backward();
    }
    scaler.unscale_(optimizer);
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-01",
    .name = "plain_backward",
    .title = "a plain backward, then unscale_",
    .expected = {.kind = "error", .words = {"Attempted unscale_ but _scale is None", "was not scaled"}},
    .run = &run});

}  // namespace plain_backward

// AMP-02: the scaler is bypassed from the second step on, when its scale is in place and nothing is missing any more.
namespace plain_backward_later {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    if (context.fixed || step == 0) {
      scaler.scale(loss).backward();
    } else {
      context.fault_on_next_line();
      loss.backward();
    }
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-02",
                         .name = "plain_backward_later",
                         .title = "a plain backward from the second step on",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "bypassed the scaler, whose scale is 1024",
                                                "1024 times too small", "(not taken)"}},
                         .run = &run});

}  // namespace plain_backward_later

// AMP-07: gradients are unscaled twice in one iteration: to log their norm, and to clip them.
namespace unscaled_twice {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    if (!context.fixed) {
      context.fault_on_next_line();
      scaler.unscale_(optimizer);
    }
    optim::clip_grad_norm_(net->parameters(), 1.0);
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-07",
                         .name = "unscaled_twice",
                         .title = "unscale_ twice in one iteration",
                         .expected = {.kind = "error",
                                      .words = {"unscale_() has already been called on this optimizer since the last "
                                                "update()",
                                                "it was unscaled at", "call unscale_() once per optimizer"}},
                         .run = &run});

}  // namespace unscaled_twice

// AMP-08: unscale_ after the step, to log a norm.
namespace unscaled_after_step {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    scaler.scale(loss_of(ddp(rank_batch(context)))).backward();
    if (context.fixed) scaler.unscale_(optimizer);
    context.fault_on_next_line();
    scaler.step(optimizer);
    if (!context.fixed) {
      context.fault_on_next_line();
      scaler.unscale_(optimizer);
    }
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "AMP-08",
    .name = "unscaled_after_step",
    .title = "unscale_ after step",
    .expected = {.kind = "error",
                 .words = {"unscale_() is being called after step()", "it has stepped at", "unscale_() before step()"}},
    .run = &run});

}  // namespace unscaled_after_step

// AMP-16: unscale_ and update() after every micro-batch: what has been gathered is divided again.
namespace unscaled_within_accumulation {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int micro = 0; micro < 4; ++micro) {
    const bool is_last = micro % 2 == 1;
    {
      std::optional<decltype(ddp)::NoSync> local;
      if (!is_last) local.emplace(ddp.no_sync());
      context.fault_on_next_line();
      scaler.scale(loss_of(ddp(rank_batch(context))) / 2.0).backward();
    }
    if (!is_last && context.fixed) continue;
    context.fault_on_next_line();
    scaler.unscale_(optimizer);
    if (is_last) {
      optim::clip_grad_norm_(net->parameters(), 1.0);
      scaler.step(optimizer);
      optimizer.zero_grad();
    }
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-16",
                         .name = "unscaled_within_accumulation",
                         .title = "unscale_ and update() within an accumulation",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "holds parts of two scales: unscaled", "divided by 1024",
                                                "scale 1024", "after the last backward of an accumulation"}},
                         .run = &run});

}  // namespace unscaled_within_accumulation

// AMP-18: two losses are added; one of them is scaled.
namespace one_of_two_losses_scaled {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    const Tensor likeness = loss_of(output - 1.0);
    const Tensor size = mean(abs(output));
    if (context.fixed) {
      scaler.scale(likeness + size).backward();
    } else {
      context.fault_on_next_line();
      const Tensor scaled = scaler.scale(likeness);
      context.fault_on_next_line();
      (scaled + size).backward();
    }
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-18",
                         .name = "one_of_two_losses_scaled",
                         .title = "one of two losses is scaled",
                         .expected = {.kind = "error",
                                      .words = {"'a.weight'", "holds parts of two scales", "scale 1024", "not scaled",
                                                "scale the sum of the two losses"}},
                         .run = &run});

}  // namespace one_of_two_losses_scaled

// AMP-22: rank 1 alone bypasses the scaler, from the second step on.
namespace plain_backward_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor loss = loss_of(ddp(rank_batch(context)));
    const bool bypass = step > 0 && context.rank() == 1 && !context.fixed;
    (bypass ? loss : scaler.scale(loss)).backward();
    context.fault_on_next_line();
    scaler.step(optimizer);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "AMP-22",
                         .name = "plain_backward_on_one_rank",
                         .title = "a plain backward on rank 1 only, from the second step on",
                         .expected = {.kind = "wrongly_scaled",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "wrong_scale",
                                      .words = {"bypassed the scaler, whose scale is 1024", "1024 times too small"}},
                         .run = &run});

}  // namespace plain_backward_on_one_rank

}  // namespace brigade::lab
