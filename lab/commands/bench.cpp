// brigade bench: microbenchmarks.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/commands/commands.h>

namespace brigade::lab {

void add_bench(Command& app) {
  Command bench = app.add_command("bench", "Microbenchmarks");
  bench.footer("Examples:\n  brigade bench allreduce --sizes 4K-64M\n  brigade bench mechanisms --csv costs.csv");
  bench.require_command();
  add_benchmarks(bench);
}

}  // namespace brigade::lab
