// UNU-04: two heads, of which only one reaches the loss (deep supervision with a forgotten output).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace {

std::vector<Tensor> run(const FaultContext& context) {
  TwoHeads net;
  dist::DistributedDataParallel ddp(net, context.group, context.options);
  const auto [first, second] = ddp(rank_batch(context.group));
  mean(square(first)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-04", "the second of two outputs never reaches the loss",
                         {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped", .module = "h2"}, &run});

}  // namespace
}  // namespace brigade::lab
