// UNU-21: static_graph, one head never in the loss: really static.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace static_graph_head_never_used {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  dist::DDPOptions options = context.options;
  options.static_graph = true;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 4; ++step) {
    loss_of(ddp(rank_batch(context)).first).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-21",
                         .title = "static_graph: a head that is never in the loss",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace static_graph_head_never_used
}  // namespace brigade::lab
