// COL-27: a gradient hook that asserts finds an infinite gradient on rank 1, and throws in the middle of backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <stdexcept>

namespace brigade::lab {
namespace assertion_in_gradient_hook {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  net->b->weight.register_hook([](const Tensor& gradient) {
    if (!all(isfinite(gradient)).item<bool>()) throw std::runtime_error("the gradient of b is not finite");
    return gradient;
  });
  for (int step = 0; step < 3; ++step) {
    Tensor x = rank_batch(context);
    if (step == 1 && context.rank() == 1 && !context.fixed) x = x * 1e30;
    const Tensor loss = loss_of(ddp(x));
    context.fault_on_next_line();
    loss.backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-27",
                         .title = "an assertion in a gradient hook throws on rank 1",
                         .expected = {.kind = "rank_failed",
                                      .ranks = {1},
                                      .cause = "exception",
                                      .words = {"the gradient of b is not finite"}},
                         .run = &run});

}  // namespace assertion_in_gradient_hook
}  // namespace brigade::lab
