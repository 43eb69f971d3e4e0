// PERF-08: all ranks train on the same data (no sampler): more of them do not help.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace same_data_everywhere {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 12; ++step) {
    const int batch = context.fixed ? step * context.group->size() + context.rank() : step;
    RandomGenerator generator(static_cast<uint64_t>(batch));
    optimizer.zero_grad();
    loss_of(ddp(randn({8, 4}, {kFloat32, context.device}, &generator))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "PERF-08",
    .title = "all ranks train on the same data",
    .expected = {.kind = "same_batches", .cause = "same_batches", .severity = dist::Severity::Warning},
    .run = &run});

}  // namespace same_data_everywhere
}  // namespace brigade::lab
