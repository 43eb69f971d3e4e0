// UNU-17: several tasks: the heads take turns.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
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
                         .title = "heads that take turns (multi-task)",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"h2.weight"},
                                      .cause = "module_not_called",
                                      .module = "h2"},
                         .run = &run});

}  // namespace heads_take_turns
}  // namespace brigade::lab
