// These controls wrap a module, a part of it or several modules in a correct way.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <memory>

namespace brigade::lab {

// OK-04: early micro-batches go through the module, the last through the wrapper.
namespace early_micro_batches_through_module {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(net(rank_batch(context))).backward();
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-04",
                         .name = "early_micro_batches_through_module",
                         .title = "early micro-batches through the bare module",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace early_micro_batches_through_module

// OK-07: one wrapper round generator and discriminator, find_unused_parameters on: over the step nothing is unused.
namespace gan_with_unused_allowed {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    real_or_fake(ddp(rank_batch(context), true), false).backward();
    sgd_step(net->discriminator->parameters());
    net->zero_grad();
    real_or_fake(ddp(rank_batch(context), false), true).backward();
    sgd_step(net->generator->parameters());
    net->zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-07",
                         .name = "gan_with_unused_allowed",
                         .title = "one wrapper round a GAN, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace gan_with_unused_allowed

// OK-08: one wrapper round generator and discriminator without a detach: wasteful, correct.
namespace gan_without_detach {

std::vector<Tensor> run(const FaultContext& context) {
  OneGan net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    real_or_fake(ddp(rank_batch(context), false), false).backward();
    sgd_step(net->discriminator->parameters());
    net->zero_grad();
    real_or_fake(ddp(rank_batch(context), false), true).backward();
    sgd_step(net->generator->parameters());
    net->zero_grad();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-08",
                         .name = "gan_without_detach",
                         .title = "one wrapper round a GAN without detach",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace gan_without_detach

// OK-14: a frozen teacher inside the wrapper; the optimizer holds the student only.
namespace frozen_teacher_inside {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    ddp(rank_batch(context)).backward();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-14",
                         .name = "frozen_teacher_inside",
                         .title = "a frozen teacher inside the wrapper",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace frozen_teacher_inside

// OK-15: the student alone is wrapped.
namespace student_alone_wrapped {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  net->to(context.device);
  auto ddp = wrap(context, net->student);
  for (int step = 0; step < 2; ++step) {
    const Tensor x = rank_batch(context);
    mean(square(ddp(x) - net->teacher(x))).backward();
    sgd_step(net->student->parameters());
  }
  return net->student->parameters();
}

const AddFault add(Fault{.id = "OK-15",
                         .name = "student_alone_wrapped",
                         .title = "the student alone wrapped, a frozen teacher beside it",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace student_alone_wrapped

// OK-19: a frozen teacher has a wrapper of its own.
namespace teacher_with_own_wrapper {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  net->to(context.device);
  auto teacher = wrap(context, net->teacher);
  dist::DistributedDataParallel student(net->student, context.group, context.options);
  const Tensor x = rank_batch(context);
  mean(square(student(x) - teacher(x))).backward();
  sgd_step(net->student->parameters());
  return net->student->parameters();
}

const AddFault add(Fault{.id = "OK-19",
                         .name = "teacher_with_own_wrapper",
                         .title = "a frozen module wrapped alone",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace teacher_with_own_wrapper

// OK-36: a layer thaws after some steps, and the module is wrapped again; the old wrapper goes once the new one is there.
namespace wrapped_again {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->to(context.device);
  net->a->requires_grad_(false);
  using Ddp = dist::DistributedDataParallel<Chain>;
  auto ddp = std::make_unique<Ddp>(net, context.group, context.options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 4; ++step) {
    if (step == 2) {
      net->a->requires_grad_(true);
      ddp = std::make_unique<Ddp>(net, context.group, context.options);
    }
    optimizer.zero_grad();
    mean(square((*ddp)(rank_batch(context)))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-36",
                         .name = "wrapped_again",
                         .title = "wrapped again, after a layer has thawed, while the old wrapper lives",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace wrapped_again

// OK-37: two modules share a layer, and each has a wrapper; their losses have a backward each.
namespace layer_of_two_wrappers {

struct HeadImpl : nn::Module {
  nn::Linear body{nullptr}, head{nullptr};
  explicit HeadImpl(const nn::Linear& shared) {
    head = register_module("head", nn::Linear(4, 4, false));
    body = register_module("body", shared);
  }
  Tensor forward(const Tensor& x) { return head(brigade::tanh(body(x))); }
};
BRIGADE_MODULE(Head);

std::vector<Tensor> run(const FaultContext& context) {
  const nn::Linear body(4, 4, false);
  Head first(body);
  Head second(body);
  second->to(context.device);
  auto a = wrap(context, first);
  dist::DistributedDataParallel<Head> b(second, context.group, context.options);
  std::vector<Tensor> parameters = first->parameters();
  parameters.push_back(second->head->weight);
  optim::SGD optimizer(parameters, {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    optimizer.zero_grad();
    mean(square(a(x))).backward();
    mean(square(b(x) - 1.0)).backward();
    optimizer.step();
  }
  return parameters;
}

const AddFault add(Fault{.id = "OK-37",
                         .name = "layer_of_two_wrappers",
                         .title = "a layer of two modules, each in a wrapper",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace layer_of_two_wrappers

}  // namespace brigade::lab
