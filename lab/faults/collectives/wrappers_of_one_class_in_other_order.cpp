// COL-24: rank 1 constructs two wrappers of one class in another order: their parameters have the same names and shapes.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace wrappers_of_one_class_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain student;
  Chain critic;
  student->to(context.device);
  critic->to(context.device);
  std::optional<dist::DistributedDataParallel<Chain>> first;
  std::optional<dist::DistributedDataParallel<Chain>> second;
  const bool other_order = context.rank() == 1 && !context.fixed;
  if (other_order) second.emplace(critic, context.group, context.options, SourceLocation::current());
  first.emplace(student, context.group, context.options, SourceLocation::current());
  if (!other_order) second.emplace(critic, context.group, context.options, SourceLocation::current());
  return student->parameters();
}

const AddFault add(Fault{.id = "COL-24",
                         .title = "two wrappers of one class constructed in another order on rank 1",
                         .expected = {.kind = "model_mismatch", .ranks = {1}, .cause = "model_differs"},
                         .run = &run});

}  // namespace wrappers_of_one_class_in_other_order
}  // namespace brigade::lab
