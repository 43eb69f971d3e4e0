// TWI-06: one module inside two nested checkpoints.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace nested_checkpoints {

struct NestedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return autograd::checkpoint(
        [this](const Tensor& in) {
          const Tensor inner = autograd::checkpoint([this](const Tensor& deep) { return relu(a(deep)); }, in);
          return b(a(inner));
        },
        x);
  }
};
BRIGADE_MODULE(Nested);

std::vector<Tensor> run(const FaultContext& context) {
  Nested net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "TWI-06",
                         .title = "a module shared by two nested checkpoints",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace nested_checkpoints
}  // namespace brigade::lab
