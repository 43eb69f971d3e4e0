// TWI-03: the same with find_unused_parameters: the second backward is averaged too.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace second_backward_averaged_too {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    const auto [a, b] = ddp(rank_batch(context));
    loss_of(a).backward({.retain_graph = true});
    b.sum().backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-03",
                         .title = "an extra backward on the unused output, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace second_backward_averaged_too
}  // namespace brigade::lab
