// UNU-01: an auxiliary head is defined, and forward never calls it.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace head_never_called {

struct WithAuxImpl : nn::Module {
  nn::Linear body{nullptr}, aux{nullptr};
  WithAuxImpl() {
    body = register_module("body", nn::Linear(4, 4));
    aux = register_module("aux", nn::Linear(4, 10));
  }
  Tensor forward(const Tensor& x) { return body(x); }
};
BRIGADE_MODULE(WithAux);

std::vector<Tensor> run(const FaultContext& context) {
  WithAux net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    mean(square(ddp(rank_batch(context)))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{"UNU-01",
                         "an auxiliary head that forward never calls",
                         {.kind = "unused_parameters",
                          .parameters = {"aux.weight", "aux.bias"},
                          .cause = "module_not_called",
                          .module = "aux"},
                         &run});

}  // namespace head_never_called
}  // namespace brigade::lab
