// In these programs an operation cuts the path from the loss to a layer.
#include <brigade/autograd/function.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// UNU-07: the path to the first layer is cut by detach().
namespace detach_before_first_layer {

struct CutImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(a(x).detach()); }
};
BRIGADE_MODULE(Cut);

std::vector<Tensor> run(const FaultContext& context) {
  Cut net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-07",
    .name = "detach_before_first_layer",
    .title = "detach() between two layers",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "detached", .module = "*"},
    .run = &run});

}  // namespace detach_before_first_layer

// UNU-09: argmax and one_hot stand between two layers.
namespace argmax_between_layers {

struct HardChoiceImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(one_hot(argmax(a(x), 1), 4).to(kFloat32)); }
};
BRIGADE_MODULE(HardChoice);

std::vector<Tensor> run(const FaultContext& context) {
  HardChoice net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-09",
    .name = "argmax_between_layers",
    .title = "argmax between two layers",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "not_differentiable", .module = "*"},
    .run = &run});

}  // namespace argmax_between_layers

// UNU-11: constant loss weights are a Parameter that is only read as a number.
namespace parameter_read_as_number {

struct WeightedImpl : nn::Module {
  nn::Linear a{nullptr};
  Tensor weight;
  WeightedImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    weight = register_parameter("weight", full({}, 0.5));
  }
  Tensor forward(const Tensor& x) { return a(x) * weight.item(); }
};
BRIGADE_MODULE(Weighted);

std::vector<Tensor> run(const FaultContext& context) {
  Weighted net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-11",
    .name = "parameter_read_as_number",
    .title = "a constant kept as a parameter and read as a number",
    .expected = {.kind = "unused_parameters", .parameters = {"weight"}, .cause = "read_as_number", .module = "*"},
    .run = &run});

}  // namespace parameter_read_as_number

// UNU-16: no targets on rank 1, so its loss is a fresh zero that depends on nothing.
namespace loss_of_fresh_zero {

struct DetectorImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(relu(a(x))); }
};
BRIGADE_MODULE(Detector);

std::vector<Tensor> run(const FaultContext& context) {
  Detector net;
  auto ddp = wrap(context, net);
  const Tensor output = ddp(rank_batch(context));
  Tensor loss = mean(square(output));
  if (context.group->rank() == 1) loss = zeros({}, {kFloat32, context.device}).requires_grad_();
  loss.backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-16",
                         .name = "loss_of_fresh_zero",
                         .title = "a fresh zero loss on rank 1 reaches no parameter at all",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "output_dropped",
                                      .module = "*"},
                         .run = &run});

}  // namespace loss_of_fresh_zero

// UNU-28: a gate is made of the indices of topk in place of its values: indices have no derivative.
namespace indices_of_topk {

// a scores, b works; the best score says how much of the work counts.
struct GatedImpl : PairImpl {
  bool by_index = false;
  Tensor forward(const Tensor& x) {
    const auto best = topk(a(x), 1);
    return b(x) * (by_index ? best.indices.to(kFloat32) : best.values);
  }
};
BRIGADE_MODULE(Gated);

std::vector<Tensor> run(const FaultContext& context) {
  Gated net;
  net->by_index = !context.fixed;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-28",
    .name = "indices_of_topk",
    .title = "the indices of topk in place of its values",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "not_differentiable", .op = "topk"},
    .run = &run});

}  // namespace indices_of_topk

// UNU-29: the backward of a custom function returns no gradient for one of its arguments.
namespace backward_returns_nothing {

// x * y
struct Product : autograd::Function<Product> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, const Tensor& y, bool forgets) {
    ctx.save_for_backward({x, y});
    ctx.saved_data["forgets"] = forgets;
    return x * y;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const std::vector<Tensor> saved = ctx.get_saved_variables();
    const bool forgets = std::any_cast<bool>(ctx.saved_data["forgets"]);
    return {grads[0] * saved[1], forgets ? Tensor() : grads[0] * saved[0], {}};
  }
};

struct MultipliedImpl : PairImpl {
  bool forgets = false;
  Tensor forward(const Tensor& x) { return Product::apply(a(x), b(x), forgets); }
};
BRIGADE_MODULE(Multiplied);

std::vector<Tensor> run(const FaultContext& context) {
  Multiplied net;
  net->forgets = !context.fixed;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-29",
                         .name = "backward_returns_nothing",
                         .title = "a custom function that returns no gradient",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"b.weight"},
                                      .cause = "gradient_not_returned",
                                      .op = "Product"},
                         .run = &run});

}  // namespace backward_returns_nothing

// UNU-33: a contrastive loss takes the keys of all ranks from all_gather, which sends no gradient back.
namespace keys_gathered {

// a makes queries, b makes keys.
struct ContrastImpl : PairImpl {
  Tensor forward(const Tensor& x, const FaultContext& context) {
    const Tensor keys = b(x);
    Tensor all = zeros({context.group->size() * keys.size(0), keys.size(1)}, keys.options());
    context.fault_on_next_line();
    context.group->all_gather(all, keys)->wait();
    if (context.fixed) all = with_own(all, keys, context.rank());
    return matmul(a(x), all.t());
  }
  // This rank's keys are those that carry gradients.
  static Tensor with_own(const Tensor& all, const Tensor& keys, int rank) {
    const int64_t rows = keys.size(0);
    const int64_t begin = rank * rows;
    return cat({all.narrow(0, 0, begin), keys, all.narrow(0, begin + rows, all.size(0) - begin - rows)});
  }
};
BRIGADE_MODULE(Contrast);

std::vector<Tensor> run(const FaultContext& context) {
  Contrast net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context), context)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-33",
    .name = "keys_gathered",
    .title = "keys that reach the loss through all_gather alone",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "collective", .op = "all_gather"},
    .run = &run});

}  // namespace keys_gathered

// UNU-34: the losses of a step are read as numbers, and their mean is made a tensor again, on every rank.
namespace loss_of_numbers {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    context.fault_on_next_line();
    Tensor loss = loss_of(ddp(rank_batch(context)));
    if (!context.fixed) {
      context.fault_on_next_line();
      const float number = loss.item<float>();
      loss = scalar_tensor(number, {kFloat32, context.device}).requires_grad_();
    }
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-34",
                         .name = "loss_of_numbers",
                         .title = "a loss made of numbers that were read, on every rank",
                         .expected = {.kind = "unreached_module",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "output_dropped",
                                      .severity = dist::Severity::Warning,
                                      .words = {"its value was read as a number, by item()"}},
                         .run = &run});

}  // namespace loss_of_numbers

// UNU-35: an encoder and a decoder in wrappers of their own, moved by one optimizer, with a detach() between.
namespace wrapper_cut_off {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;  // a encodes, b decodes
  net->to(context.device);
  if (context.watched) *context.watched = net->parameters();
  dist::DistributedDataParallel encoder(net->a, context.group, context.options);
  dist::DistributedDataParallel decoder(net->b, context.group, context.options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    Tensor code = encoder(rank_batch(context));
    if (!context.fixed) {
      context.fault_on_next_line();
      code = code.detach();
    }
    loss_of(decoder(code)).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-35",
                         .name = "wrapper_cut_off",
                         .title = "a wrapper that a detach() cuts off from the loss of another one",
                         .expected = {.kind = "unreached_module",
                                      .parameters = {"weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "detached",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace wrapper_cut_off

}  // namespace brigade::lab
