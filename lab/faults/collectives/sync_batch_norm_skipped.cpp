// COL-16: a module with SyncBatchNorm is skipped on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/ddp/sync_batch_norm.h>

namespace brigade::lab {
namespace sync_batch_norm_skipped {

struct BranchImpl : NormedImpl {
  bool skip = false;
  Tensor forward(const Tensor& x) { return skip ? layer(x) : norm(layer(x)); }
};
BRIGADE_MODULE(Branch);

std::vector<Tensor> run(const FaultContext& context) {
  Branch net;
  dist::convert_sync_batchnorm(net, context.group);
  auto ddp = wrap(context, net, context.find_unused());
  net->skip = context.rank() == 1 && !context.fixed;
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-16",
                         .title = "a SyncBatchNorm skipped on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace sync_batch_norm_skipped
}  // namespace brigade::lab
