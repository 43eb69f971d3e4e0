// all_gather: every rank gets the parts of all ranks, in rank order. In place, a rank's part is already where it
// belongs.
#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/values.h>

namespace brigade::lab::bench {

namespace {

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

}  // namespace

}  // namespace brigade::lab::bench
