// UNU-30: a layer runs under no_grad inside a checkpointed segment.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace no_grad_in_a_checkpoint {

struct SegmentImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    const auto segment = [this](const Tensor& in) {
      Tensor features;
      {
        const NoGradGuard no_grad;
        features = a(in);
      }
      return b(in + features);
    };
    return autograd::checkpoint(segment, x);
  }
};
BRIGADE_MODULE(Segment);

std::vector<Tensor> run(const FaultContext& context) {
  Segment net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-30",
    .title = "no_grad inside a checkpointed segment",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad", .op = "linear"},
    .run = &run});

}  // namespace no_grad_in_a_checkpoint
}  // namespace brigade::lab
