// reduce_scatter: a rank gets its part of the reduction over all ranks. In place, the output is the rank's part of
// the input.
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/values.h>

namespace brigade::lab::bench {

namespace {

const AddCollective add_reduce_scatter({
    .name = "reduce_scatter",
    .reduces = true,
    .whole_output = false,
    .bus_factor = [](double ranks) { return (ranks - 1) / ranks; },
    .post =
        [](dist::ProcessGroup& group, const Buffers& buffers, const dist::CollectiveOptions& options) {
          return group.reduce_scatter(buffers.output, buffers.input, options);
        },
    .fill = [](const Buffers& buffers, int rank, int ranks) { fill_contribution(buffers.input, rank, ranks); },
    .wrong = [](const Buffers& buffers, dist::ReduceOp op, int rank,
                int ranks) { return count_wrong(buffers.output, op, ranks, rank * buffers.output.numel()); },
});

}  // namespace

}  // namespace brigade::lab::bench
