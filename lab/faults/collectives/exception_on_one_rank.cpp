// COL-04: an exception on rank 1.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <stdexcept>

namespace brigade::lab {
namespace exception_on_one_rank {

struct PickyImpl : ChainImpl {
  bool fails = false;
  Tensor forward(const Tensor& x) {
    if (fails) throw std::runtime_error("sample 17 has no label");
    return ChainImpl::forward(x);
  }
};
BRIGADE_MODULE(Picky);

std::vector<Tensor> run(const FaultContext& context) {
  Picky net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    net->fails = step == 1 && context.rank() == 1 && !context.fixed;
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "COL-04",
                         .title = "an exception on rank 1",
                         .expected = {.kind = "rank_lost", .ranks = {1}, .cause = "exception"},
                         .run = &run});

}  // namespace exception_on_one_rank
}  // namespace brigade::lab
