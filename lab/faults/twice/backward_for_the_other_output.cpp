// TWI-02: the other output gets a backward of its own, so that every output takes part.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace backward_for_the_other_output {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  const auto [a, b] = ddp(rank_batch(context));
  loss_of(a).backward({.retain_graph = true});
  b.sum().backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "TWI-02",
    .title = "an extra backward on the unused output",
    .expected = {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped"},
    .run = &run});

}  // namespace backward_for_the_other_output
}  // namespace brigade::lab
