// UNU-33: a contrastive loss takes the keys of all ranks from all_gather, which sends no gradient back.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace keys_gathered {

// a makes queries, b makes keys.
struct ContrastImpl : PairImpl {
  Tensor forward(const Tensor& x, const FaultContext& context) {
    const Tensor keys = b(x);
    Tensor all = zeros({context.group->size() * keys.size(0), keys.size(1)}, keys.options());
    context.fault_on_next_line();
    context.group->all_gather(all, keys)->wait();
    if (context.fixed) all = with_own(all, keys, context.rank());
    return matmul(a(x), all.t());
  }
  // This rank's keys are those that carry gradients.
  static Tensor with_own(const Tensor& all, const Tensor& keys, int rank) {
    const int64_t rows = keys.size(0);
    const int64_t begin = rank * rows;
    return cat({all.narrow(0, 0, begin), keys, all.narrow(0, begin + rows, all.size(0) - begin - rows)});
  }
};
BRIGADE_MODULE(Contrast);

std::vector<Tensor> run(const FaultContext& context) {
  Contrast net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context), context)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-33",
    .title = "keys that reach the loss through all_gather alone",
    .expected = {.kind = "unused_parameters", .parameters = {"b.weight"}, .cause = "collective", .op = "all_gather"},
    .run = &run});

}  // namespace keys_gathered
}  // namespace brigade::lab
