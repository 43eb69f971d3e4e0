// OK-13: a checkpoint of a module that is used outside of it as well.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace checkpointed_module_used_elsewhere {

struct SharedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return b(a(autograd::checkpoint([this](const Tensor& in) { return relu(a(in)); }, x)));
  }
};
BRIGADE_MODULE(Shared);

std::vector<Tensor> run(const FaultContext& context) {
  Shared net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-13", .title = "checkpoint of a shared module", .expected = {.detected = false}, .run = &run});

}  // namespace checkpointed_module_used_elsewhere
}  // namespace brigade::lab
