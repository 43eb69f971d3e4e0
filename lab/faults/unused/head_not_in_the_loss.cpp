// UNU-04: two heads, of which only one reaches the loss (deep supervision with a forgotten output).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace head_not_in_the_loss {

// A trunk with two heads.
struct TwoHeadsImpl : nn::Module {
  nn::Linear trunk{nullptr}, h1{nullptr}, h2{nullptr};
  TwoHeadsImpl() {
    trunk = register_module("trunk", nn::Linear(4, 4, false));
    h1 = register_module("h1", nn::Linear(4, 2, false));
    h2 = register_module("h2", nn::Linear(4, 2, false));
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x) {
    const Tensor features = relu(trunk(x));
    return {h1(features), h2(features)};
  }
};
BRIGADE_MODULE(TwoHeads);

std::vector<Tensor> run(const FaultContext& context) {
  TwoHeads net;
  auto ddp = wrap(context, net);
  const auto [first, second] = ddp(rank_batch(context));
  mean(square(first)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    "UNU-04",
    "the second of two outputs never reaches the loss",
    {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped", .module = "h2"},
    &run});

}  // namespace head_not_in_the_loss
}  // namespace brigade::lab
