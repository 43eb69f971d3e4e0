// The program `brigade-bench`, which `brigade bench` executes: microbenchmarks.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/program.h>

namespace {

constexpr const char* kFooter =
    "Where is what I know?\n"
    "  nccl-tests all_reduce_perf -b 4 -e 1G -f 4   brigade bench allreduce --sizes 4-1G:x4\n"
    "  nccl-tests all_gather_perf -d bfloat16       brigade bench collectives --collectives all_gather --dtypes bfloat16\n"
    "  nccl-tests -n 20 -w 5 -o max                 --calls 20 --ops max\n"
    "  osu_allreduce, osu_bcast, osu_barrier        brigade bench collectives --family latency\n"
    "  osu_iallreduce -t 16                         brigade bench allreduce --family overlap --progress 16\n"
    "  mpirun -n 4 all_reduce_perf                  mpirun -n 4 brigade bench allreduce, or --ranks 4 (threads, shm, gloo: --backends)\n"
    "All take turns within rounds, until --noise is reached; all write --json, --csv, and compare with --baseline FILE.\n"
    "Columns and options are explained in docs/bench.md.\n"
    "Examples:\n"
    "  brigade bench allreduce --ranks 2,4 --backends shm,gloo --plot bandwidth.svg\n"
    "  brigade bench collectives --json today.json\n"
    "  brigade bench collectives --baseline today.json\n"
    "  brigade bench mechanisms --csv costs.csv";

}  // namespace

int main(int argc, char** argv) {
  const int status = brigade::lab::run_program(argc, argv, [](brigade::lab::Command& app) {
    brigade::lab::Command bench =
        app.add_command("bench", "Microbenchmarks: collectives, DDP's mechanisms, operations, optimizers");
    bench.footer(kFooter);
    bench.require_command();
    brigade::lab::add_benchmarks(bench);
  });
  brigade::lab::bench::leave_joined_groups();
  return status;
}
