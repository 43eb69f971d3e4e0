// COL-08: float32 against int32: as many bytes, another meaning.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_dtype {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->all_reduce(ones({4}, {kInt32, context.device}))->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-08",
                         .title = "float32 against int32 on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_dtype
}  // namespace brigade::lab
