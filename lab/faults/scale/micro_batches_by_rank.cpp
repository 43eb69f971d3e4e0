// SCL-12: rank 1 gathers one micro-batch more than the others.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace micro_batches_by_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const int micro_batches = context.rank() == 1 && !context.fixed ? 3 : 2;
  for (int step = 0; step < 2; ++step) {
    optimizer.zero_grad();
    for (int micro = 0; micro < micro_batches; ++micro) {
      std::optional<decltype(ddp)::NoSync> local;
      if (micro + 1 < micro_batches) local.emplace(ddp.no_sync());
      (loss_of(ddp(rank_batch(context))) / static_cast<double>(micro_batches)).backward();
    }
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-12",
                         .title = "another number of micro-batches on rank 1",
                         .expected = {.kind = "uneven_micro_batches",
                                      .ranks = {kAnyRanks},
                                      .cause = "uneven_batches",
                                      .file_and_line = false,
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace micro_batches_by_rank
}  // namespace brigade::lab
