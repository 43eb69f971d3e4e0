// UNU-27: of many buckets one is incomplete, in step 3 of 5.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace one_bucket_of_many {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 5; ++step) {
    net->skip_b = step == 2;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-27",
    .title = "one bucket of many is incomplete in step 3 of 5",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "module_not_called", .module = "b"},
    .run = &run});

}  // namespace one_bucket_of_many
}  // namespace brigade::lab
