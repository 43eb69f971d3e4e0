// barrier: no rank continues until all ranks have arrived. It moves no data, so it has a time and no bandwidth.
#include <brigade/lab/bench/collectives/collective.h>

namespace brigade::lab::bench {

namespace {

const AddCollective add_barrier({
    .name = "barrier",
    .has_data = false,
    .bus_factor = [](double) { return 0.0; },
    .post = [](dist::ProcessGroup& group, const Buffers&, const dist::CollectiveOptions& options) -> dist::WorkPtr {
      group.barrier(options);
      return nullptr;
    },
    .fill = [](const Buffers&, int, int) {},
    .wrong = [](const Buffers&, dist::ReduceOp, int, int) { return int64_t{0}; },
});

}  // namespace

}  // namespace brigade::lab::bench
