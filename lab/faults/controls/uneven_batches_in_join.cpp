// OK-17: the ranks have different numbers of batches, inside join().
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/ddp/join.h>

namespace brigade::lab {
namespace uneven_batches_in_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  dist::Join join(ddp);
  for (int batch = 0; batch < 2 + context.rank(); ++batch) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  join.finish();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-17", .title = "join() with uneven inputs", .expected = {.detected = false}, .run = &run});

}  // namespace uneven_batches_in_join
}  // namespace brigade::lab
