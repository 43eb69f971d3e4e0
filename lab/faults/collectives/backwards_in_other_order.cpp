// COL-10: two wrapped modules, rank 1 runs their backwards in another order.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace backwards_in_other_order {

struct SmallImpl : nn::Module {
  nn::Linear layer{nullptr};
  SmallImpl() { layer = register_module("layer", nn::Linear(4, 2, false)); }
  Tensor forward(const Tensor& x) { return layer(x); }
};
BRIGADE_MODULE(Small);
struct LargeImpl : nn::Module {
  nn::Linear layer{nullptr};
  LargeImpl() { layer = register_module("layer", nn::Linear(4, 64, false)); }
  Tensor forward(const Tensor& x) { return layer(x); }
};
BRIGADE_MODULE(Large);

std::vector<Tensor> run(const FaultContext& context) {
  Small small;
  Large large;
  large->to(context.device);
  auto first = wrap(context, small);
  dist::DistributedDataParallel second(large, context.group, context.options);
  const Tensor a = loss_of(first(rank_batch(context)));
  const Tensor b = loss_of(second(rank_batch(context)));
  const bool other_order = context.rank() == 1 && !context.fixed;
  (other_order ? b : a).backward();
  (other_order ? a : b).backward();
  return small->parameters();
}

const AddFault add(Fault{.id = "COL-10",
                         .title = "two wrappers, backward in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace backwards_in_other_order
}  // namespace brigade::lab
