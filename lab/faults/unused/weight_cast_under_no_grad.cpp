// UNU-25: a converted copy of a weight is made under no_grad, kept, and used for training (what a cast cache does
// wrong).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace weight_cast_under_no_grad {

struct CachedImpl : PairImpl {
  Tensor copy_of_a;
  Tensor forward(const Tensor& x) {
    if (!copy_of_a.defined()) copy_of_a = a->weight.to(kFloat64);
    return linear(linear(x, copy_of_a), b->weight.to(kFloat64));
  }
};
BRIGADE_MODULE(Cached);

std::vector<Tensor> run(const FaultContext& context) {
  Cached net;
  auto ddp = wrap(context, net);
  {
    const NoGradGuard no_grad;
    net->forward(rank_batch(context).to(kFloat64));
  }
  loss_of(ddp(rank_batch(context).to(kFloat64))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-25",
                         .title = "a weight used through a copy that was made under no_grad",
                         .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "no_grad"},
                         .run = &run});

}  // namespace weight_cast_under_no_grad
}  // namespace brigade::lab
