// SCL-14: a layer is replaced after wrapping, where parameters may be unused: the optimizer holds the old one.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace optimizer_of_the_layer_before {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  if (context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  auto ddp = wrap(context, net, context.find_unused());
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  if (!context.fixed) net->b = net->replace_module("b", nn::Linear(4, 4, false));
  net->to(context.device);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-14",
                         .title = "an optimizer that holds a layer the module has no more",
                         .expected = {.kind = "stale_optimizer",
                                      .parameters = {"b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "replaced",
                                      .module = "b",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace optimizer_of_the_layer_before
}  // namespace brigade::lab
