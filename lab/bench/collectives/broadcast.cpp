// broadcast: every rank gets the values of rank 0. Brigade's broadcast works in place; out of place, the root
// copies its input first.
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/values.h>

namespace brigade::lab::bench {

namespace {

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

}  // namespace

}  // namespace brigade::lab::bench
