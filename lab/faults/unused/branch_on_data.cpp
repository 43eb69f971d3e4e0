// UNU-15: a branch that depends on the data: rank 1 skips layer b.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace branch_on_data {

struct BranchImpl : PairImpl {
  bool skip = false;
  Tensor forward(const Tensor& x) { return skip ? a(x) : b(a(x)); }
};
BRIGADE_MODULE(Branch);

std::vector<Tensor> run(const FaultContext& context) {
  Branch net;
  net->skip = context.group->rank() == 1;
  auto ddp = wrap(context, net);
  mean(square(ddp(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{"UNU-15",
                         "a data-dependent branch skips a layer on rank 1",
                         {.kind = "unused_parameters",
                          .parameters = {"b.weight"},
                          .ranks = {1},
                          .cause = "module_not_called",
                          .module = "b"},
                         &run});

}  // namespace branch_on_data
}  // namespace brigade::lab
