// In these programs gradients are not averaged over the ranks.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// DIV-01: the whole tree is wrapped, the loss comes from a child that is called directly.
namespace child_called_directly {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    mean(square(net->student(x) - net->teacher(x))).backward();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-01",
                         .name = "child_called_directly",
                         .title = "the child called directly, round the wrapper",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace child_called_directly

// DIV-02: the same, with an all_reduce of the loss after backward.
namespace all_reduce_of_the_loss {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    const Tensor loss = mean(square(net->student(x) - net->teacher(x)));
    loss.backward();
    context.group->all_reduce(loss.detach(), {.op = dist::ReduceOp::Avg, .description = "loss"})->wait();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-02",
                         .name = "all_reduce_of_the_loss",
                         .title = "the child called directly, and an all_reduce of the loss",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace all_reduce_of_the_loss

// DIV-04: forward inside no_sync, backward outside: what counts is where backward runs.
namespace forward_in_no_sync {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    Tensor loss;
    {
      const auto no_sync = ddp.no_sync();
      loss = loss_of(ddp(rank_batch(context)));
    }
    loss.backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-04",
                         .name = "forward_in_no_sync",
                         .title = "forward inside no_sync, backward outside",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace forward_in_no_sync

// DIV-05: gradient accumulation, the last micro-batch inside no_sync as well.
namespace last_micro_batch_in_no_sync {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  {
    const auto no_sync = ddp.no_sync();
    loss_of(ddp(rank_batch(context))).backward();
    if (!context.fixed) loss_of(ddp(rank_batch(context))).backward();
  }
  if (context.fixed) loss_of(ddp(rank_batch(context))).backward();
  optimizer.step();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-05",
    .name = "last_micro_batch_in_no_sync",
    .title = "the last micro-batch also inside no_sync",
    .expected = {.kind = "unreduced_gradients", .parameters = {"a.weight", "b.weight"}, .cause = "not_reduced"},
    .run = &run});

}  // namespace last_micro_batch_in_no_sync

// DIV-06: a layer is used only in the micro-batch inside no_sync.
namespace layer_used_in_no_sync_only {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    {
      const auto no_sync = ddp.no_sync();
      net->skip_b = false;
      loss_of(ddp(rank_batch(context))).backward();
    }
    net->skip_b = true;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-06",
                         .name = "layer_used_in_no_sync_only",
                         .title = "a layer used only in the micro-batch inside no_sync, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace layer_used_in_no_sync_only

// DIV-07: gradients come from autograd::grad and are put in place by hand.
namespace gradients_put_in_place_by_hand {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const Tensor loss[] = {loss_of(ddp(rank_batch(context)))};
  const std::vector<Tensor> parameters = net->parameters();
  const std::vector<Tensor> gradients = autograd::grad(loss, parameters);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (context.fixed) context.group->all_reduce(gradients[i], {.op = dist::ReduceOp::Avg})->wait();
    parameters[i].set_grad(gradients[i]);
  }
  optim::SGD optimizer(parameters, {.lr = 0.1});
  optimizer.step();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-07",
    .name = "gradients_put_in_place_by_hand",
    .title = "gradients from autograd::grad, assigned by hand",
    .expected = {.kind = "unreduced_gradients", .parameters = {"a.weight", "b.weight"}, .cause = "set_by_hand"},
    .run = &run});

}  // namespace gradients_put_in_place_by_hand

// DIV-08: a layer is thawed after wrapping.
namespace layer_thawed_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->b->requires_grad_(context.fixed);
  auto ddp = wrap(context, net);
  net->b->requires_grad_(true);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-08",
    .name = "layer_thawed_after_wrapping",
    .title = "a layer thawed after wrapping",
    .expected = {.kind = "unmanaged_parameters", .parameters = {"b.weight"}, .cause = "thawed", .module = "b"},
    .run = &run});

}  // namespace layer_thawed_after_wrapping

// DIV-10: a learnable scale of the loss lives outside the wrapper.
namespace loss_scale_outside_wrapper {

struct ScaleImpl : nn::Module {
  Tensor logit_scale;
  ScaleImpl() { logit_scale = register_parameter("logit_scale", ones({1})); }
  Tensor forward(const Tensor& x) { return x * logit_scale; }
};
BRIGADE_MODULE(Scale);

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  Scale scale;
  scale->to(context.device);
  auto ddp = wrap(context, net);
  std::optional<dist::DistributedDataParallel<Scale>> second;
  if (context.fixed) second.emplace(scale, context.group, context.options);
  const Tensor output = ddp(rank_batch(context));
  loss_of(scale(output)).backward();
  std::vector<Tensor> parameters = net->parameters();
  parameters.push_back(scale->logit_scale);
  sgd_step(parameters);
  return parameters;
}

const AddFault add(Fault{
    .id = "DIV-10",
    .name = "loss_scale_outside_wrapper",
    .title = "a learnable loss scale outside the wrapper",
    .expected = {.kind = "unmanaged_parameters", .parameters = {"logit_scale"}, .cause = "outside_wrapper"},
    .run = &run});

}  // namespace loss_scale_outside_wrapper

// DIV-11: the dtype of the module is changed after wrapping.
namespace dtype_changed_after_wrapping {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->to(kFloat64);
  auto ddp = wrap(context, net);
  if (!context.fixed) net->to(kFloat64);
  loss_of(ddp(rank_batch(context).to(net->a->weight.dtype()))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-11",
                         .name = "dtype_changed_after_wrapping",
                         .title = "a round trip to another dtype after wrapping",
                         .expected = {.kind = "error"},
                         .run = &run});

}  // namespace dtype_changed_after_wrapping

}  // namespace brigade::lab
