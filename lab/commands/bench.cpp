// brigade bench: microbenchmarks.
#include <brigade/lab/bench/benchmark.h>
#include <brigade/lab/commands/commands.h>

#include <CLI/CLI.hpp>

namespace brigade::lab {

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "Microbenchmarks");
  bench->footer("Examples:\n  brigade bench allreduce --sizes 4K-64M\n  brigade bench mechanisms --csv costs.csv");
  bench->require_subcommand(1);
  add_benchmarks(*bench, exit_code);
}

}  // namespace brigade::lab
