// DIV-19: batch norm, and broadcast_buffers off.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace buffers_not_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  dist::DDPOptions options = context.options;
  options.broadcast_buffers = context.fixed;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-19",
                         .title = "batch norm with broadcast_buffers off",
                         .expected = {.kind = "buffers_differ",
                                      .parameters = {"norm.running_mean", "norm.running_var"},
                                      .ranks = {kAnyRanks},
                                      .cause = "values_differ",
                                      .module = "norm",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace buffers_not_broadcast
}  // namespace brigade::lab
