// OK-16: deep supervision: the weights of the losses are a buffer, all outputs are in the loss.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace deep_supervision {

struct SupervisedImpl : HeadsImpl {
  Tensor weights;
  SupervisedImpl() { weights = register_buffer("weights", tensor<float>({1.0F, 0.5F})); }
};
BRIGADE_MODULE(Supervised);

std::vector<Tensor> run(const FaultContext& context) {
  Supervised net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const auto [a, b] = ddp(rank_batch(context));
    const Tensor weights = net->weights;
    (loss_of(a) * weights.select(0, 0) + loss_of(b) * weights.select(0, 1)).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-16", .title = "deep supervision with weights in a buffer", .expected = {.detected = false}, .run = &run});

}  // namespace deep_supervision
}  // namespace brigade::lab
