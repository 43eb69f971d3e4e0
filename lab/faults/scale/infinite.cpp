// In these programs an output or a gradient is infinite.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// SCL-05: half-precision communication of gradients that do not fit.
namespace half_precision_overflow {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  ddp.register_comm_hook(context.fixed ? dist::bf16_compress_hook() : dist::fp16_compress_hook());
  // The gradient of b is large, that of a is small.
  const Tensor out = net->b(relu(net->a(abs(rank_batch(context)))).detach());
  (out.sum() * 1e6 + loss_of(net->a(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "SCL-05",
    .name = "half_precision_overflow",
    .title = "fp16 compression overflows",
    .expected = {.kind = "hook_result", .parameters = {"b.weight"}, .cause = "overflow", .op = "fp16_compress"},
    .run = &run});

}  // namespace half_precision_overflow

// SCL-08: an output that is infinite on rank 1 takes part in the loss with weight zero.
namespace infinite_output_with_weight_zero {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const auto [used, unused] = ddp(rank_batch(context));
    const bool bad = step == 0 && context.rank() == 1 && !context.fixed;
    const Tensor divided = unused / full({1}, bad ? 0.0 : 2.0, {kFloat32, context.device});
    (loss_of(used) + 0.0 * divided.sum()).backward();
    sgd_step(net->parameters());
    // Numbers in place of NaN, to go on with.
    for (const Tensor& parameter : net->parameters()) {
      const NoGradGuard no_grad;
      if (step == 0 && !context.fixed) parameter.fill_(0.5);
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-08",
                         .name = "infinite_output_with_weight_zero",
                         .title = "0 * output, where the output is infinite on rank 1",
                         .expected = {.kind = "non_finite_gradients",
                                      .ranks = {1},
                                      .cause = "non_finite",
                                      .severity = dist::Severity::Warning,
                                      .op = "div"},
                         .run = &run});

}  // namespace infinite_output_with_weight_zero

// SCL-16: rank 1 takes the root of zero: the loss is finite, its gradient is not.
namespace root_of_zero {

// The distance of two points, which are the same on rank 1 at first.
struct DistanceImpl : PairImpl {
  double floor = 0;
  Tensor forward(const Tensor& x, const Tensor& y) { return sqrt(square(b(a(x)) - b(a(y))).sum({-1}) + floor); }
};
BRIGADE_MODULE(Distance);

std::vector<Tensor> run(const FaultContext& context) {
  Distance net;
  net->floor = context.fixed ? 1e-6 : 0;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const Tensor x = rank_batch(context);
    ddp(x, step == 0 && context.rank() == 1 ? x : x * 2.0).mean().backward();
    sgd_step(net->parameters());
    // Numbers in place of NaN, to go on with.
    for (const Tensor& parameter : net->parameters()) {
      const NoGradGuard no_grad;
      if (step == 0 && !context.fixed) parameter.fill_(0.5);
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-16",
                         .name = "root_of_zero",
                         .title = "a finite loss with an infinite gradient (the root of 0) on rank 1",
                         .expected = {.kind = "non_finite_gradients",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "non_finite",
                                      .severity = dist::Severity::Warning,
                                      .op = "sqrt"},
                         .run = &run});

}  // namespace root_of_zero

}  // namespace brigade::lab
