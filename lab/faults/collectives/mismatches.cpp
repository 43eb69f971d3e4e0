// In these programs the collectives of the ranks do not match, or come in another order.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {

// COL-03: rank 1 has another key in its dictionary of metrics.
namespace other_metric_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const std::string last = context.rank() == 1 && !context.fixed ? "recall" : "precision";
  for (const std::string& metric : {std::string("accuracy"), last}) {
    const Tensor value = ones({1}, {kFloat32, context.device});
    context.group->all_reduce(value, {.op = dist::ReduceOp::Avg, .description = "metric " + metric})->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-03",
                         .name = "other_metric_on_one_rank",
                         .title = "another metric on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_metric_on_one_rank

// COL-06: all_reduce on most ranks, broadcast on rank 1.
namespace all_reduce_against_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->broadcast(value)->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-06",
                         .name = "all_reduce_against_broadcast",
                         .title = "all_reduce against broadcast",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace all_reduce_against_broadcast

// COL-07: rank 1 reduces another number of elements.
namespace other_number_of_elements {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->all_reduce(ones({7}, {kFloat32, context.device}))->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-07",
                         .name = "other_number_of_elements",
                         .title = "another number of elements on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_number_of_elements

// COL-08: float32 against int32: as many bytes, another meaning.
namespace other_dtype {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->all_reduce(ones({4}, {kInt32, context.device}))->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-08",
                         .name = "other_dtype",
                         .title = "float32 against int32 on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_dtype

// COL-10: two wrapped modules, rank 1 runs their backwards in another order.
namespace backwards_in_other_order {

struct SmallImpl : nn::Module {
  nn::Linear layer{nullptr};
  SmallImpl() { layer = register_module("layer", nn::Linear(4, 2, false)); }
  Tensor forward(const Tensor& x) { return layer(x); }
};
BRIGADE_MODULE(Small);
struct LargeImpl : nn::Module {
  nn::Linear layer{nullptr};
  LargeImpl() { layer = register_module("layer", nn::Linear(4, 64, false)); }
  Tensor forward(const Tensor& x) { return layer(x); }
};
BRIGADE_MODULE(Large);

std::vector<Tensor> run(const FaultContext& context) {
  Small small;
  Large large;
  large->to(context.device);
  auto first = wrap(context, small);
  dist::DistributedDataParallel second(large, context.group, context.options);
  const Tensor a = loss_of(first(rank_batch(context)));
  const Tensor b = loss_of(second(rank_batch(context)));
  const bool other_order = context.rank() == 1 && !context.fixed;
  (other_order ? b : a).backward();
  (other_order ? a : b).backward();
  return small->parameters();
}

const AddFault add(Fault{.id = "COL-10",
                         .name = "backwards_in_other_order",
                         .title = "two wrappers, backward in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace backwards_in_other_order

// COL-12: rank 1 constructs the wrappers in another order.
namespace wrappers_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain chain;
  Heads heads;
  chain->to(context.device);
  heads->to(context.device);
  std::optional<dist::DistributedDataParallel<Chain>> first;
  std::optional<dist::DistributedDataParallel<Heads>> second;
  const bool other_order = context.rank() == 1 && !context.fixed;
  if (other_order) second.emplace(heads, context.group, context.options, SourceLocation::current());
  first.emplace(chain, context.group, context.options, SourceLocation::current());
  if (!other_order) second.emplace(heads, context.group, context.options, SourceLocation::current());
  return chain->parameters();
}

const AddFault add(Fault{.id = "COL-12",
                         .name = "wrappers_in_other_order",
                         .title = "wrappers constructed in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace wrappers_in_other_order

// COL-23: two wrapped modules of one class; rank 1 runs their backwards in another order. Nothing but the order tells
// their buckets apart.
namespace backwards_of_one_class_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain student;
  Chain critic;
  auto first = wrap(context, student);
  auto second = wrap(context, critic);
  const Tensor a = loss_of(first(rank_batch(context)));
  const Tensor b = loss_of(second(rank_batch(context)));
  const bool other_order = context.rank() == 1 && !context.fixed;
  (other_order ? b : a).backward();
  (other_order ? a : b).backward();
  sgd_step(student->parameters());
  sgd_step(critic->parameters());
  return student->parameters();
}

const AddFault add(Fault{.id = "COL-23",
                         .name = "backwards_of_one_class_in_other_order",
                         .title = "two wrappers of one class, backward in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace backwards_of_one_class_in_other_order

// COL-24: rank 1 constructs two wrappers of one class in another order: their parameters have the same names and shapes.
namespace wrappers_of_one_class_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain student;
  Chain critic;
  student->to(context.device);
  critic->to(context.device);
  std::optional<dist::DistributedDataParallel<Chain>> first;
  std::optional<dist::DistributedDataParallel<Chain>> second;
  const bool other_order = context.rank() == 1 && !context.fixed;
  if (other_order) second.emplace(critic, context.group, context.options, SourceLocation::current());
  first.emplace(student, context.group, context.options, SourceLocation::current());
  if (!other_order) second.emplace(critic, context.group, context.options, SourceLocation::current());
  return student->parameters();
}

const AddFault add(Fault{.id = "COL-24",
                         .name = "wrappers_of_one_class_in_other_order",
                         .title = "two wrappers of one class constructed in another order on rank 1",
                         .expected = {.kind = "model_mismatch", .ranks = {1}, .cause = "model_differs"},
                         .run = &run});

}  // namespace wrappers_of_one_class_in_other_order

}  // namespace brigade::lab
