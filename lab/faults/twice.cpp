// In these programs a backward reaches a parameter more than once, or one that forward does not use.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// TWI-01: one forward, backward of one output, then backward of the sum of both: both are averaged.
namespace backward_of_one_output_then_of_both {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  const auto [a, b] = ddp(rank_batch(context));
  const Tensor loss_a = loss_of(a);
  loss_a.backward({.retain_graph = true});
  (loss_a + loss_of(b)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-01",
                         .name = "backward_of_one_output_then_of_both",
                         .title = "one forward, backward(a), then backward(a + b)",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace backward_of_one_output_then_of_both

// TWI-02: the other output gets a backward of its own, so that every output takes part.
namespace backward_for_the_other_output {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  const auto [a, b] = ddp(rank_batch(context));
  loss_of(a).backward({.retain_graph = true});
  b.sum().backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "TWI-02",
    .name = "backward_for_the_other_output",
    .title = "an extra backward on the unused output",
    .expected = {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped"},
    .run = &run});

}  // namespace backward_for_the_other_output

// TWI-03: the same with find_unused_parameters: the second backward is averaged too.
namespace second_backward_averaged_too {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    const auto [a, b] = ddp(rank_batch(context));
    loss_of(a).backward({.retain_graph = true});
    b.sum().backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-03",
                         .name = "second_backward_averaged_too",
                         .title = "an extra backward on the unused output, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace second_backward_averaged_too

// TWI-04: a parameter that forward does not use is in the loss (a weight penalty).
namespace weight_penalty {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = true;
  auto ddp = wrap(context, net, context.find_unused());
  (loss_of(ddp(rank_batch(context))) + loss_of(net->b->weight)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-04",
                         .name = "weight_penalty",
                         .title = "a weight penalty on a parameter that forward does not use",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace weight_penalty

// TWI-05: activation checkpointing with find_unused_parameters.
namespace checkpointing_with_unused_allowed {

struct CheckpointedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return autograd::checkpoint([this](const Tensor& in) { return b(relu(a(in))); }, x);
  }
};
BRIGADE_MODULE(Checkpointed);

std::vector<Tensor> run(const FaultContext& context) {
  Checkpointed net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-05",
                         .name = "checkpointing_with_unused_allowed",
                         .title = "activation checkpointing, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace checkpointing_with_unused_allowed

// TWI-06: one module inside two nested checkpoints.
namespace nested_checkpoints {

struct NestedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return autograd::checkpoint(
        [this](const Tensor& in) {
          const Tensor inner = autograd::checkpoint([this](const Tensor& deep) { return relu(a(deep)); }, in);
          return b(a(inner));
        },
        x);
  }
};
BRIGADE_MODULE(Nested);

std::vector<Tensor> run(const FaultContext& context) {
  Nested net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-06",
                         .name = "nested_checkpoints",
                         .title = "a module shared by two nested checkpoints",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace nested_checkpoints

}  // namespace brigade::lab
