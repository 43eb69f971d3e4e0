// UNU-22: a layer is frozen after wrapping.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace {

struct ChainImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(relu(a(x))); }
};
BRIGADE_MODULE(Chain);

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DistributedDataParallel ddp(net, context.group, context.options);
  net->b->requires_grad_(false);
  mean(square(ddp(rank_batch(context.group)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-22",
                         "a layer frozen after wrapping",
                         {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "frozen", .module = "b"},
                         &run});

}  // namespace
}  // namespace brigade::lab
