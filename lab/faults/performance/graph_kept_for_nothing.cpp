// PERF-03: a backward keeps its graph, and no other backward needs it.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace graph_kept_for_nothing {

std::vector<Tensor> run(const FaultContext& context) {
  nn::Linear generator(4, 4);
  nn::Linear discriminator(4, 1);
  discriminator->to(context.device);
  auto g = wrap(context, generator);
  dist::DistributedDataParallel d(discriminator, context.group, context.options);
  const Tensor fake = brigade::tanh(g(rank_batch(context)));
  real_or_fake(d(fake.detach()), false).backward({.retain_graph = !context.fixed});
  sgd_step(discriminator->parameters());
  real_or_fake(d(fake), true).backward();
  sgd_step(generator->parameters());
  return generator->parameters();
}

const AddFault add(Fault{.id = "PERF-03",
                         .title = "a needless retain_graph",
                         .expected = {.kind = "needless_retain_graph",
                                      .ranks = {kAnyRanks},
                                      .cause = "wasteful",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace graph_kept_for_nothing
}  // namespace brigade::lab
