// PERF-02: no_sync round backward only: no collective runs inside it.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace no_sync_round_backward_only {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    for (int micro = 0; micro < 4; ++micro) {
      const Tensor loss = loss_of(ddp(rank_batch(context)));
      if (micro < 3) {
        const uint64_t before = ddp.reducer().collectives();
        const auto no_sync = ddp.no_sync();
        loss.backward();
        if (ddp.reducer().collectives() != before) throw ValueError("collectives ran under no_sync");
      } else {
        loss.backward();
      }
    }
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "PERF-02", .title = "no_sync round backward only", .expected = {.detected = false}, .run = &run});

}  // namespace no_sync_round_backward_only
}  // namespace brigade::lab
