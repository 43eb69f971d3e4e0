// In these programs an optimizer moves too few parameters, or moves them too far.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// SCL-07: no zero_grad between steps.
namespace no_zero_grad {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    if (context.fixed) optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-07",
                         .name = "no_zero_grad",
                         .title = "no zero_grad: gradients pile up over the steps",
                         .expected = {.kind = "gradients_accumulate",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "not_cleared",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace no_zero_grad

// SCL-13: fine-tuning: the optimizer is made before the head is replaced by a new one, which it never moves.
namespace head_replaced_after_the_optimizer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  std::optional<optim::SGD> optimizer;
  if (!context.fixed) optimizer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.01});
  net->b = net->replace_module("b", nn::Linear(4, 4, false));
  if (context.fixed) optimizer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.01});
  auto ddp = wrap(context, net);
  for (int step = 0; step < 4; ++step) {
    optimizer->zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer->step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-13",
                         .name = "head_replaced_after_the_optimizer",
                         .title = "a head replaced after the optimizer was made",
                         .expected = {.kind = "stale_optimizer",
                                      .parameters = {"b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "replaced",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace head_replaced_after_the_optimizer

// SCL-14: a layer is replaced after wrapping, where parameters may be unused: the optimizer holds the old one.
namespace optimizer_of_the_layer_before {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  auto ddp = wrap(context, net, context.find_unused());
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  if (!context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  net->to(context.device);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-14",
                         .name = "optimizer_of_the_layer_before",
                         .title = "an optimizer that holds a layer the module has no more",
                         .expected = {.kind = "stale_optimizer",
                                      .parameters = {"b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "replaced",
                                      .module = "b",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace optimizer_of_the_layer_before

// SCL-15: an optimizer steps twice after one backward.
namespace step_taken_twice {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    if (!context.fixed) optimizer.step();  // the trainer's own, beside that of a callback
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-15",
                         .name = "step_taken_twice",
                         .title = "a second step without a new backward",
                         .expected = {.kind = "idle_step",
                                      .ranks = {kAnyRanks},
                                      .cause = "no_backward",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace step_taken_twice

// SCL-18: weights with decay, biases without it: a parameter that is in neither group never moves.
namespace parameter_in_no_group {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  std::vector<Tensor> with_decay = net->layer->parameters();
  std::vector<Tensor> without_decay = {net->norm->bias};
  if (context.fixed) without_decay.push_back(net->norm->weight);
  optim::SGD optimizer(
      std::vector<optim::SGD::Group>{{with_decay, {.lr = 0.01, .weight_decay = 0.1}}, {without_decay, {.lr = 0.01}}});
  for (int step = 0; step < 36; ++step) {
    net->zero_grad();
    loss_of(ddp(rank_batch(context)) - 1.0).backward();
    context.fault_on_next_line();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-18",
                         .name = "parameter_in_no_group",
                         .title = "a parameter in none of the optimizer's groups",
                         .expected = {.kind = "unheld_parameters",
                                      .parameters = {"norm.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "not_held",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace parameter_in_no_group

}  // namespace brigade::lab
