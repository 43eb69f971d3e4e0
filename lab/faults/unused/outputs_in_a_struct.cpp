// UNU-05: outputs hidden in a struct of the user, all of them used, with find_unused_parameters.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace outputs_in_a_struct {

struct Box {
  Tensor a, b;
};
struct BoxedImpl : HeadsImpl {
  Box forward(const Tensor& x) {
    const auto [a, b] = HeadsImpl::forward(x);
    return {a, b};
  }
};
BRIGADE_MODULE(Boxed);

std::vector<Tensor> run(const FaultContext& context) {
  Boxed net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    const Box out = ddp(rank_batch(context));
    (loss_of(out.a) + loss_of(out.b)).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-05",
                         .title = "outputs in a struct of the user, all used",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace outputs_in_a_struct
}  // namespace brigade::lab
