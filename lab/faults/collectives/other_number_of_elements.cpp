// COL-07: rank 1 reduces another number of elements.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_number_of_elements {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  const Tensor value = ones({4}, {kFloat32, context.device});
  if (context.rank() == 1 && !context.fixed) {
    context.group->all_reduce(ones({7}, {kFloat32, context.device}))->wait();
  } else {
    context.group->all_reduce(value)->wait();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-07",
                         .title = "another number of elements on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace other_number_of_elements
}  // namespace brigade::lab
