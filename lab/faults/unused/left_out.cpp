// These programs leave a layer out of forward, or an output out of the loss.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-01: an auxiliary head is defined, and forward never calls it.
namespace head_never_called {

struct WithAuxImpl : nn::Module {
  nn::Linear body{nullptr}, aux{nullptr};
  WithAuxImpl() {
    body = register_module("body", nn::Linear(4, 4));
    aux = register_module("aux", nn::Linear(4, 10));
  }
  Tensor forward(const Tensor& x) { return body(x); }
};
BRIGADE_MODULE(WithAux);

std::vector<Tensor> run(const FaultContext& context) {
  WithAux net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    mean(square(ddp(rank_batch(context)))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-01",
                         .name = "head_never_called",
                         .title = "an auxiliary head that forward never calls",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"aux.weight", "aux.bias"},
                                      .cause = "module_not_called",
                                      .module = "aux"},
                         .run = &run});

}  // namespace head_never_called

// UNU-02: the auxiliary head that forward never calls, and training stops after one iteration.
namespace head_never_called_one_iteration {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  net->skip_b = true;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-02",
    .name = "head_never_called_one_iteration",
    .title = "a head that forward never calls, one iteration only",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "module_not_called", .module = "b"},
    .run = &run});

}  // namespace head_never_called_one_iteration

// UNU-04: two heads, of which only one reaches the loss (deep supervision with a forgotten output).
namespace head_not_in_the_loss {

// A trunk with two heads.
struct TwoHeadsImpl : nn::Module {
  nn::Linear trunk{nullptr}, h1{nullptr}, h2{nullptr};
  TwoHeadsImpl() {
    trunk = register_module("trunk", nn::Linear(4, 4, false));
    h1 = register_module("h1", nn::Linear(4, 2, false));
    h2 = register_module("h2", nn::Linear(4, 2, false));
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor features = relu(trunk(x));
    return {h1(features), h2(features)};
  }
};
BRIGADE_MODULE(TwoHeads);

std::vector<Tensor> run(const FaultContext& context) {
  TwoHeads net;
  auto ddp = wrap(context, net);
  const auto [first, second] = ddp(rank_batch(context));
  mean(square(first)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-04",
    .name = "head_not_in_the_loss",
    .title = "the second of two outputs never reaches the loss",
    .expected = {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped", .module = "h2"},
    .run = &run});

}  // namespace head_not_in_the_loss

// UNU-05: outputs hidden in a struct of the user, all of them used, with find_unused_parameters.
namespace outputs_in_a_struct {

struct Box {
  Tensor a, b;
};
struct BoxedImpl : HeadsImpl {
  Box forward(const Tensor& x) {
    const auto [a, b] = HeadsImpl::forward(x);
    return {a, b};
  }
};
BRIGADE_MODULE(Boxed);

std::vector<Tensor> run(const FaultContext& context) {
  Boxed net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    const Box out = ddp(rank_batch(context));
    (loss_of(out.a) + loss_of(out.b)).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-05",
                         .name = "outputs_in_a_struct",
                         .title = "outputs in a struct of the user, all used",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace outputs_in_a_struct

// UNU-06: outputs hidden in a struct of the user, one of them never used.
namespace output_in_a_struct_forgotten {

struct Box {
  Tensor a, b;
};
struct BoxedImpl : HeadsImpl {
  Box forward(const Tensor& x) {
    const Tensor features = brigade::tanh(t(x));
    return {h1(features), h2(features)};
  }
};
BRIGADE_MODULE(Boxed);

std::vector<Tensor> run(const FaultContext& context) {
  Boxed net;
  auto ddp = wrap(context, net);
  const Box out = ddp(rank_batch(context));
  loss_of(out.a).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-06",
    .name = "output_in_a_struct_forgotten",
    .title = "outputs in a struct of the user, one not in the loss",
    .expected = {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped", .module = "h2"},
    .run = &run});

}  // namespace output_in_a_struct_forgotten

// UNU-15: a branch that depends on the data: rank 1 skips layer b.
namespace branch_on_data {

struct BranchImpl : PairImpl {
  bool skip = false;
  Tensor forward(const Tensor& x) { return skip ? a(x) : b(a(x)); }
};
BRIGADE_MODULE(Branch);

std::vector<Tensor> run(const FaultContext& context) {
  Branch net;
  net->skip = context.group->rank() == 1;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-15",
                         .name = "branch_on_data",
                         .title = "a data-dependent branch skips a layer on rank 1",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"b.weight"},
                                      .ranks = {1},
                                      .cause = "module_not_called",
                                      .module = "b"},
                         .run = &run});

}  // namespace branch_on_data

// UNU-17: several tasks: the heads take turns.
namespace heads_take_turns {

struct MultiTaskImpl : HeadsImpl {
  // Both in the first step, then one after the other.
  Tensor forward(const Tensor& x, int step) {
    const Tensor features = brigade::tanh(t(x));
    if (step == 0) return h1(features) + h2(features);
    return step % 2 == 1 ? h1(features) : h2(features);
  }
};
BRIGADE_MODULE(MultiTask);

std::vector<Tensor> run(const FaultContext& context) {
  MultiTask net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    loss_of(ddp(rank_batch(context), step)).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-17",
                         .name = "heads_take_turns",
                         .title = "heads that take turns (multi-task)",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"h2.weight"},
                                      .cause = "module_not_called",
                                      .module = "h2"},
                         .run = &run});

}  // namespace heads_take_turns

// UNU-27: of many buckets one is incomplete, in step 3 of 5.
namespace one_bucket_of_many {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 5; ++step) {
    net->skip_b = step == 2;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-27",
    .name = "one_bucket_of_many",
    .title = "one bucket of many is incomplete in step 3 of 5",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "module_not_called", .module = "b"},
    .run = &run});

}  // namespace one_bucket_of_many

// UNU-32: a layer is used in three backwards, and not from the fourth on.
namespace layer_not_used_any_more {

struct WarmedUpImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool is_warm = false;
  WarmedUpImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    b = register_module("b", nn::Linear(4, 4, false));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = relu(a(x));
    return is_warm ? features : b(features);
  }
};
BRIGADE_MODULE(WarmedUp);

std::vector<Tensor> run(const FaultContext& context) {
  WarmedUp net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    net->is_warm = step >= 3;
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-32",
                         .name = "layer_not_used_any_more",
                         .title = "a layer used until backward 3, and not since",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"b.weight"},
                                      .cause = "module_not_called",
                                      .module = "b",
                                      .note = "used in backwards 1 to 3, not in 4; last taken by linear at "},
                         .run = &run});

}  // namespace layer_not_used_any_more

}  // namespace brigade::lab
