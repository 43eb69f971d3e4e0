// These programs freeze or replace a layer after the module is wrapped.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-22: a layer is frozen after wrapping.
namespace layer_frozen_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  net->b->requires_grad_(false);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-22",
    .name = "layer_frozen_after_wrapping",
    .title = "a layer frozen after wrapping",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "frozen", .module = "b"},
    .run = &run});

}  // namespace layer_frozen_after_wrapping

// UNU-23: a layer is replaced by a new one after wrapping.
namespace layer_replaced_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  auto ddp = wrap(context, net);
  if (!context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  net->to(context.device);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-23",
    .name = "layer_replaced_after_wrapping",
    .title = "a layer replaced after wrapping",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "replaced", .module = "b"},
    .run = &run});

}  // namespace layer_replaced_after_wrapping

// UNU-31: for the next task, another head is assigned to the handle; the old one stays registered.
namespace handle_assigned_anew {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int task = 0; task < 2; ++task) {
    if (task > 0 && !context.fixed) net->b = nn::Linear(4, 4, false);
    net->b->to(context.device);
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-31",
    .name = "handle_assigned_anew",
    .title = "another layer assigned to a handle between two steps",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "replaced", .module = "b"},
    .run = &run});

}  // namespace handle_assigned_anew

}  // namespace brigade::lab
