// DIV-20: batch norm, and the state is read before the next broadcast.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/detail/broadcast_coalesced.h>

namespace brigade::lab {
namespace buffers_read_before_broadcast {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  if (context.fixed) {
    dist::broadcast_coalesced(*context.group, net->buffers(), 0,
                              {dist::Phase::Inspection, dist::Name("buffers before they are saved")});
  }
  dist::verify_consistency(*context.group, net).raise_if_inconsistent();
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-20",
                         .title = "buffers read between a forward and the next broadcast",
                         .expected = {.kind = "buffers_differ",
                                      .parameters = {"norm.running_mean", "norm.running_var"},
                                      .ranks = {kAnyRanks},
                                      .cause = "values_differ",
                                      .module = "norm"},
                         .run = &run});

}  // namespace buffers_read_before_broadcast
}  // namespace brigade::lab
