// PERF-01: find_unused_parameters is on, and nothing is unused.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace nothing_unused {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net, context.fixed ? context.options : context.find_unused());
  for (int step = 0; step < 12; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-01",
                         .title = "find_unused_parameters on, nothing unused",
                         .expected = {.kind = "nothing_unused", .cause = "wasteful", .severity = dist::Severity::Note},
                         .run = &run});

}  // namespace nothing_unused
}  // namespace brigade::lab
