// SCL-16: rank 1 takes the root of zero: the loss is finite, its gradient is not.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace root_of_zero {

// The distance of two points, which are the same on rank 1.
struct DistanceImpl : PairImpl {
  double floor = 0;
  Tensor forward(const Tensor& x, const Tensor& y) { return sqrt(square(b(a(x)) - b(a(y))).sum({-1}) + floor); }
};
BRIGADE_MODULE(Distance);

std::vector<Tensor> run(const FaultContext& context) {
  Distance net;
  net->floor = context.fixed ? 1e-6 : 0;
  auto ddp = wrap(context, net);
  const Tensor x = rank_batch(context.group);
  ddp(x, context.rank() == 1 ? x : x * 2.0).mean().backward();
  sgd_step(net->parameters());
  // Zeros in place of NaN, so that what is compared is a number.
  for (const Tensor& parameter : net->parameters()) {
    const NoGradGuard no_grad;
    if (!context.fixed) parameter.fill_(0);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-16",
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
