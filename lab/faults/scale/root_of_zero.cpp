// SCL-16: rank 1 takes the root of zero: the loss is finite, its gradient is not.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
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
