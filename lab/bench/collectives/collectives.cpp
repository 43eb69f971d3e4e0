// The collectives that are measured: what each posts, the values that it gets and must give, and its bus bandwidth.
#include <brigade/lab/bench/collectives/collective.h>

namespace brigade::lab::bench {
namespace {

// all_reduce: every rank gets the reduction over all ranks. Brigade's all_reduce works in place; out of place, the
// input is copied first.
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

// broadcast: every rank gets the values of rank 0. Brigade's broadcast works in place; out of place, the root
// copies its input first.
const AddCollective add_broadcast({
    .name = "broadcast",
    .has_root = true,
    .bus_factor = [](double) { return 1.0; },
    .post =
        [](dist::ProcessGroup& group, const Buffers& buffers, const dist::CollectiveOptions& options) {
          if (group.rank() == options.root) copy_input(buffers);
          return group.broadcast(buffers.output, options);
        },
    .fill = [](const Buffers& buffers, int rank, int ranks) { fill_contribution(buffers.input, rank, ranks); },
    .wrong = [](const Buffers& buffers, dist::ReduceOp, int,
                int ranks) { return count_wrong_copies(buffers.output, 0, ranks); },
});

// reduce_scatter: a rank gets its part of the reduction over all ranks. In place, the output is the rank's part of
// the input.
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

// all_gather: every rank gets the parts of all ranks, in rank order. In place, a rank's part is already where it
// belongs.
const AddCollective add_all_gather({
    .name = "all_gather",
    .whole_input = false,
    .bus_factor = [](double ranks) { return (ranks - 1) / ranks; },
    .post =
        [](dist::ProcessGroup& group, const Buffers& buffers, const dist::CollectiveOptions& options) {
          return group.all_gather(buffers.output, buffers.input, options);
        },
    .fill = [](const Buffers& buffers, int rank, int ranks) { fill_contribution(buffers.input, rank, ranks); },
    .wrong =
        [](const Buffers& buffers, dist::ReduceOp, int, int ranks) {
          const int64_t count = buffers.output.numel() / ranks;
          int64_t wrong = 0;
          for (int rank = 0; rank < ranks; ++rank)
            wrong += count_wrong_copies(buffers.output.narrow(0, rank * count, count), rank, ranks);
          return wrong;
        },
});

// barrier: no rank continues until all ranks have arrived. It moves no data, so it has a time and no bandwidth.
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
