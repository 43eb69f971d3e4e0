// SCL-01: a communication hook sums and does not divide.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace hook_that_sums {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  const dist::ReduceOp op = context.fixed ? dist::ReduceOp::Avg : dist::ReduceOp::Sum;
  ddp.register_comm_hook(dist::make_comm_hook("mine", [op](dist::ProcessGroup& group, const dist::GradBucket& bucket) {
    return group.all_reduce(bucket.buffer(), {.op = op});
  }));
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "SCL-01",
    .title = "a communication hook that forgets to divide",
    .expected = {.kind = "hook_result", .parameters = {"a.weight", "b.weight"}, .cause = "wrong_scale"},
    .run = &run});

}  // namespace hook_that_sums
}  // namespace brigade::lab
