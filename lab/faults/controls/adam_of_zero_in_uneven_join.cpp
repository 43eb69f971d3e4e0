// OK-23: Adam inside an uneven join, as a ZeroRedundancyOptimizer: it steps on every rank, and goes on afterwards.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/ddp/join.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>

namespace brigade::lab {
namespace adam_of_zero_in_uneven_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  dist::ZeroRedundancyOptimizer<optim::Adam> optimizer(net->parameters(), {.lr = 0.1}, context.group);
  const auto train = [&] {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  };
  dist::Join join({ddp, optimizer});
  for (int batch = 0; batch < (context.rank() == 1 ? 2 : 3); ++batch)
    train();
  join.finish();
  train();  // on the last batches of all
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-23",
                         .title = "Adam of a ZeroRedundancyOptimizer in an uneven join",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace adam_of_zero_in_uneven_join
}  // namespace brigade::lab
