// UNU-20: static_graph, and a layer that was used is skipped later.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace static_graph_layer_goes {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.static_graph = !context.fixed;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 4; ++step) {
    net->skip_b = step == 3;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-20",
    .title = "static_graph: used, later unused",
    .expected = {.kind = "static_graph_changed", .parameters = {"b.weight"}, .cause = "graph_changed", .module = "b"},
    .run = &run});

}  // namespace static_graph_layer_goes
}  // namespace brigade::lab
