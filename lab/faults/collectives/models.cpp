// In these programs the ranks wrap models or set options that differ.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// COL-18: a parameter has another shape on rank 1.
namespace parameter_of_other_shape {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, context.rank() == 1 && !context.fixed ? 5 : 4, false);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-18",
    .name = "parameter_of_other_shape",
    .title = "another shape on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"weight"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace parameter_of_other_shape

// COL-19: rank 1 has a parameter more.
namespace one_parameter_more {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, 4, context.rank() == 1 && !context.fixed);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-19",
    .name = "one_parameter_more",
    .title = "another number of parameters on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"bias"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace one_parameter_more

// COL-20: the dtype differs on rank 1.
namespace parameter_of_other_dtype {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear net(4, 4, false);
  if (context.rank() == 1 && !context.fixed) net->to(kFloat64);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "COL-20",
    .name = "parameter_of_other_dtype",
    .title = "another dtype on rank 1",
    .expected = {.kind = "model_mismatch", .parameters = {"weight"}, .ranks = {1}, .cause = "model_differs"},
    .run = &run});

}  // namespace parameter_of_other_dtype

// COL-21: rank 1 wraps with another option.
namespace other_option {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  const bool odd = context.rank() == 1 && !context.fixed;
  auto ddp = wrap(context, net, odd ? context.find_unused() : context.options);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-21",
                         .name = "other_option",
                         .title = "find_unused_parameters on rank 1 only",
                         .expected = {.kind = "model_mismatch", .ranks = {1}, .cause = "model_differs"},
                         .run = &run});

}  // namespace other_option

// COL-22: rank 1 alone registers a communication hook.
namespace hook_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 || context.fixed) ddp.register_comm_hook(dist::fp16_compress_hook());
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-22",
                         .name = "hook_on_one_rank",
                         .title = "a communication hook on rank 1 only",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace hook_on_one_rank

}  // namespace brigade::lab
