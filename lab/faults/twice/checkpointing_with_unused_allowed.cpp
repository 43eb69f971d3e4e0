// TWI-05: activation checkpointing with find_unused_parameters.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace checkpointing_with_unused_allowed {

struct CheckpointedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return autograd::checkpoint([this](const Tensor& in) { return b(relu(a(in))); }, x);
  }
};
BRIGADE_MODULE(Checkpointed);

std::vector<Tensor> run(const FaultContext& context) {
  Checkpointed net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-05",
                         .title = "activation checkpointing, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace checkpointing_with_unused_allowed
}  // namespace brigade::lab
