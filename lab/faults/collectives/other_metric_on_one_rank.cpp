// COL-03: rank 1 has another key in its dictionary of metrics.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_metric_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const std::string last = context.rank() == 1 && !context.fixed ? "recall" : "precision";
  for (const std::string& metric : {std::string("accuracy"), last}) {
    const Tensor value = ones({1}, {kFloat32, context.device});
    context.group->all_reduce(value, {.op = dist::ReduceOp::Avg, .description = "metric " + metric})->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-03",
                         .title = "another metric on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_metric_on_one_rank
}  // namespace brigade::lab
