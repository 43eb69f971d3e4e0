// brigade bench: microbenchmarks.
#include <brigade/lab/commands/bench_allreduce.h>
#include <brigade/lab/commands/bench_micro.h>
#include <brigade/lab/commands/commands.h>

#include <CLI/CLI.hpp>

namespace brigade::lab {

void add_bench(CLI::App& app, int& exit_code) {
  CLI::App* bench = app.add_subcommand("bench", "Microbenchmarks");
  bench->require_subcommand(1);
  add_bench_allreduce(*bench, exit_code);
  add_bench_micro(*bench, exit_code);
}

}  // namespace brigade::lab
