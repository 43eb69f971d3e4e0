// These controls are short training steps that look like a fault and are correct.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// Controls: what must not be reported.
namespace assorted {

// OK-01: dead units. The gradients are exactly zero, and that is a gradient.
std::vector<Tensor> dead_relu(const FaultContext& context) {
  Chain net;
  {
    const NoGradGuard no_grad;
    net->a->weight.fill_(-1);
  }
  auto ddp = wrap(context, net);
  mean(square(ddp(abs(rank_batch(context))))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}
const AddFault add_dead(Fault{.id = "OK-01",
                              .name = "assorted",
                              .title = "dead units: gradients of exactly zero",
                              .expected = {.detected = false},
                              .run = &dead_relu});

// OK-02: frozen before wrapping.
std::vector<Tensor> frozen_before(const FaultContext& context) {
  Chain net;
  net->a->requires_grad_(false);
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->b->parameters());
  return net->parameters();
}
const AddFault add_frozen(Fault{.id = "OK-02",
                                .name = "assorted",
                                .title = "frozen before wrapping",
                                .expected = {.detected = false},
                                .run = &frozen_before});

// OK-03: one weight in two places.
struct TiedImpl : nn::Module {
  nn::Linear first{nullptr};
  TiedImpl() { first = register_module("first", nn::Linear(4, 4, false)); }
  Tensor forward(const Tensor& x) { return linear(relu(first(x)), first->weight); }
};
BRIGADE_MODULE(Tied);
std::vector<Tensor> tied(const FaultContext& context) {
  Tied net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}
const AddFault add_tied(Fault{
    .id = "OK-03", .name = "assorted", .title = "tied weights", .expected = {.detected = false}, .run = &tied});

// OK-09: generator and discriminator in two wrappers: a backward that reaches one of them is no business of the other.
std::vector<Tensor> two_wrappers(const FaultContext& context) {
  nn::Linear generator(4, 4);
  nn::Linear discriminator(4, 1);
  generator->to(context.device);
  discriminator->to(context.device);
  dist::DistributedDataParallel g(generator, context.group, context.options);
  dist::DistributedDataParallel d(discriminator, context.group, context.options);
  for (int step = 0; step < 2; ++step) {
    const Tensor fake = brigade::tanh(g(rank_batch(context)));
    const Tensor of_detached = d(fake.detach());
    binary_cross_entropy_with_logits(of_detached, zeros_like(of_detached)).backward();
    sgd_step(discriminator->parameters());
    const Tensor of_fake = d(fake);
    binary_cross_entropy_with_logits(of_fake, ones_like(of_fake)).backward();
    sgd_step(generator->parameters());
    discriminator->zero_grad();
  }
  std::vector<Tensor> all = generator->parameters();
  for (const Tensor& parameter : discriminator->parameters())
    all.push_back(parameter);
  return all;
}
const AddFault add_wrappers(Fault{.id = "OK-09",
                                  .name = "assorted",
                                  .title = "generator and discriminator in two wrappers",
                                  .expected = {.detected = false},
                                  .run = &two_wrappers});

// OK-11: two forwards, one backward.
std::vector<Tensor> two_forwards(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const Tensor x = rank_batch(context);
  (mean(square(ddp(x))) + mean(square(ddp(x * 2.0)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}
const AddFault add_forwards(Fault{.id = "OK-11",
                                  .name = "assorted",
                                  .title = "two forwards, one backward",
                                  .expected = {.detected = false},
                                  .run = &two_forwards});

// TWI-08: two forwards, then two backwards: both are reduced.
std::vector<Tensor> two_backwards(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const Tensor x = rank_batch(context);
  const Tensor first = mean(square(ddp(x)));
  const Tensor second = mean(square(ddp(x * 2.0)));
  first.backward();
  second.backward();
  sgd_step(net->parameters());
  return net->parameters();
}
const AddFault add_backwards(Fault{.id = "TWI-08",
                                   .name = "assorted",
                                   .title = "two forwards, two backwards",
                                   .expected = {.detected = false},
                                   .run = &two_backwards});

// BUF-01: two forwards through batch norm, one backward.
struct NormedConvImpl : nn::Module {
  nn::Conv2d conv{nullptr};
  nn::BatchNorm2d norm{nullptr};
  NormedConvImpl() {
    conv = register_module("conv", nn::Conv2d(1, 2, 1));
    norm = register_module("norm", nn::BatchNorm2d(2));
  }
  Tensor forward(const Tensor& x) { return norm(conv(x)); }
};
BRIGADE_MODULE(NormedConv);
std::vector<Tensor> batch_norm_twice(const FaultContext& context) {
  NormedConv net;
  auto ddp = wrap(context, net);
  const Tensor x = rank_batch(context).reshape({8, 1, 2, 2});
  (mean(square(ddp(x))) + mean(abs(ddp(x + 1.0)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}
const AddFault add_normed(Fault{.id = "BUF-01",
                                .name = "assorted",
                                .title = "two forwards through batch norm, one backward",
                                .expected = {.detected = false},
                                .run = &batch_norm_twice});

}  // namespace assorted

}  // namespace brigade::lab
