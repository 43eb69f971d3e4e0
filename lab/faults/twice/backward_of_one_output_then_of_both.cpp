// TWI-01: one forward, backward of one output, then backward of the sum of both: both are averaged.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace backward_of_one_output_then_of_both {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  const auto [a, b] = ddp(rank_batch(context));
  const Tensor loss_a = loss_of(a);
  loss_a.backward({.retain_graph = true});
  (loss_a + loss_of(b)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-01",
                         .title = "one forward, backward(a), then backward(a + b)",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace backward_of_one_output_then_of_both
}  // namespace brigade::lab
