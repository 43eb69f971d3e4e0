// UNU-28: a gate is made of the indices of topk in place of its values: indices have no derivative.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace indices_of_topk {

// a scores, b works; the best score says how much of the work counts.
struct GatedImpl : PairImpl {
  bool by_index = false;
  Tensor forward(const Tensor& x) {
    const auto best = topk(a(x), 1);
    return b(x) * (by_index ? best.indices.to(kFloat32) : best.values);
  }
};
BRIGADE_MODULE(Gated);

std::vector<Tensor> run(const FaultContext& context) {
  Gated net;
  net->by_index = !context.fixed;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-28",
    .title = "the indices of topk in place of its values",
    .expected = {.kind = "unused_parameters", .parameters = {"a.weight"}, .cause = "not_differentiable", .op = "topk"},
    .run = &run});

}  // namespace indices_of_topk
}  // namespace brigade::lab
