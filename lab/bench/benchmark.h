// The commands below `brigade bench`: a file of a benchmark adds its own from a static object.
#pragma once

namespace CLI {
class App;
}

namespace brigade::lab {

// `add` adds subcommands to `bench`; each sets the exit status when it runs.
struct AddBenchmark {
  explicit AddBenchmark(void (*add)(CLI::App& bench, int& exit_code));
};

// All of them.
void add_benchmarks(CLI::App& bench, int& exit_code);

}  // namespace brigade::lab
