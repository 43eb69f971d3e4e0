// UNU-09: argmax and one_hot stand between two layers.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace argmax_between_layers {

struct HardChoiceImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(one_hot(argmax(a(x), 1), 4).to(kFloat32)); }
};
BRIGADE_MODULE(HardChoice);

std::vector<Tensor> run(const FaultContext& context) {
  HardChoice net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    "UNU-09",
    "argmax between two layers",
    {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "not_differentiable", .module = "*"},
    &run});

}  // namespace argmax_between_layers
}  // namespace brigade::lab
