// UNU-11: constant loss weights are a Parameter that is only read as a number.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace parameter_read_as_number {

struct WeightedImpl : nn::Module {
  nn::Linear a{nullptr};
  Tensor weight;
  WeightedImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    weight = register_parameter("weight", full({}, 0.5));
  }
  Tensor forward(const Tensor& x) { return a(x) * weight.item(); }
};
BRIGADE_MODULE(Weighted);

std::vector<Tensor> run(const FaultContext& context) {
  Weighted net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    "UNU-11",
    "a constant kept as a parameter and read as a number",
    {.kind = "unused_parameters", .parameters = {"weight"}, .cause = "read_as_number", .module = "*"},
    &run});

}  // namespace parameter_read_as_number
}  // namespace brigade::lab
