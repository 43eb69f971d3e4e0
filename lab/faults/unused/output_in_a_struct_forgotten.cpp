// UNU-06: outputs hidden in a struct of the user, one of them never used.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace output_in_a_struct_forgotten {

struct Box {
  Tensor a, b;
};
struct BoxedImpl : HeadsImpl {
  Box forward(const Tensor& x) {
    const Tensor features = brigade::tanh(t(x));
    return {h1(features), h2(features)};
  }
};
BRIGADE_MODULE(Boxed);

std::vector<Tensor> run(const FaultContext& context) {
  Boxed net;
  auto ddp = wrap(context, net);
  const Box out = ddp(rank_batch(context));
  loss_of(out.a).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-06",
    .title = "outputs in a struct of the user, one not in the loss",
    .expected = {.kind = "unused_parameters", .parameters = {"h2.weight"}, .cause = "output_dropped", .module = "h2"},
    .run = &run});

}  // namespace output_in_a_struct_forgotten
}  // namespace brigade::lab
