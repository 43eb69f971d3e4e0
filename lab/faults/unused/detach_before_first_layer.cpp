// UNU-07: the path to the first layer is cut by detach().
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace detach_before_first_layer {

struct CutImpl : PairImpl {
  Tensor forward(const Tensor& x) { return b(a(x).detach()); }
};
BRIGADE_MODULE(Cut);

std::vector<Tensor> run(const FaultContext& context) {
  Cut net;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-07",
                         "detach() between two layers",
                         {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "detached", .module = "*"},
                         &run});

}  // namespace detach_before_first_layer
}  // namespace brigade::lab
