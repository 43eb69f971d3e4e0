// UNU-19: static_graph, and a layer that the first step skips is used in the second.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace static_graph_layer_comes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.static_graph = !context.fixed;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 2; ++step) {
    net->skip_b = step == 0;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-19",
    .title = "static_graph: unused in step 1, used in step 2",
    .expected = {.kind = "static_graph_changed", .parameters = {"b.weight"}, .cause = "graph_changed", .module = "b"},
    .run = &run});

}  // namespace static_graph_layer_comes
}  // namespace brigade::lab
