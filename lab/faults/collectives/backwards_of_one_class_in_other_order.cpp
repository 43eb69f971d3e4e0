// COL-23: two wrapped modules of one class; rank 1 runs their backwards in another order. Nothing but the order tells
// their buckets apart.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace backwards_of_one_class_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain student;
  Chain critic;
  auto first = wrap(context, student);
  auto second = wrap(context, critic);
  const Tensor a = loss_of(first(rank_batch(context)));
  const Tensor b = loss_of(second(rank_batch(context)));
  const bool other_order = context.rank() == 1 && !context.fixed;
  (other_order ? b : a).backward();
  (other_order ? a : b).backward();
  sgd_step(student->parameters());
  sgd_step(critic->parameters());
  return student->parameters();
}

const AddFault add(Fault{.id = "COL-23",
                         .title = "two wrappers of one class, backward in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace backwards_of_one_class_in_other_order
}  // namespace brigade::lab
