// COL-12: rank 1 constructs the wrappers in another order.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>

namespace brigade::lab {
namespace wrappers_in_other_order {

std::vector<Tensor> run(const FaultContext& context) {
  Chain chain;
  Heads heads;
  chain->to(context.device);
  heads->to(context.device);
  std::optional<dist::DistributedDataParallel<Chain>> first;
  std::optional<dist::DistributedDataParallel<Heads>> second;
  const bool other_order = context.rank() == 1 && !context.fixed;
  if (other_order) second.emplace(heads, context.group, context.options, SourceLocation::current());
  first.emplace(chain, context.group, context.options, SourceLocation::current());
  if (!other_order) second.emplace(heads, context.group, context.options, SourceLocation::current());
  return chain->parameters();
}

const AddFault add(Fault{.id = "COL-12",
                         .title = "wrappers constructed in another order on rank 1",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace wrappers_in_other_order
}  // namespace brigade::lab
