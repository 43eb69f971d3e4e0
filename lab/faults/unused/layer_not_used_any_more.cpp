// UNU-32: a layer is used in three backwards, and not from the fourth on.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace layer_not_used_any_more {

struct WarmedUpImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool is_warm = false;
  WarmedUpImpl() {
    a = register_module("a", nn::Linear(4, 4, false));
    b = register_module("b", nn::Linear(4, 4, false));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = relu(a(x));
    return is_warm ? features : b(features);
  }
};
BRIGADE_MODULE(WarmedUp);

std::vector<Tensor> run(const FaultContext& context) {
  WarmedUp net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    net->is_warm = step >= 3;
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-32",
                         .title = "a layer used until backward 3, and not since",
                         .expected = {.kind = "unused_parameters",
                                      .parameters = {"b.weight"},
                                      .cause = "module_not_called",
                                      .module = "b",
                                      .note = "used in backwards 1 to 3, not in 4; last taken by linear at "},
                         .run = &run});

}  // namespace layer_not_used_any_more
}  // namespace brigade::lab
