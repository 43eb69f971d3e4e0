// all_reduce: every rank gets the reduction over all ranks. Brigade's all_reduce works in place; out of place, the
// input is copied first.
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/values.h>

namespace brigade::lab::bench {

namespace {

const AddCollective add_all_reduce({
    .name = "all_reduce",
    .reduces = true,
    .bus_factor = [](double ranks) { return 2 * (ranks - 1) / ranks; },
    .post =
        [](dist::ProcessGroup& group, const Buffers& buffers, const dist::CollectiveOptions& options) {
          copy_input(buffers);
          return group.all_reduce(buffers.output, options);
        },
    .fill = [](const Buffers& buffers, int rank, int ranks) { fill_contribution(buffers.input, rank, ranks); },
    .wrong = [](const Buffers& buffers, dist::ReduceOp op, int,
                int ranks) { return count_wrong(buffers.output, op, ranks); },
});

}  // namespace

}  // namespace brigade::lab::bench
