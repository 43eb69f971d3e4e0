// The commands below `brigade bench`: a file of a benchmark adds its own from a static object.
#pragma once

#include <brigade/lab/command_line.h>

namespace brigade::lab {

// `add` adds subcommands to `bench`;
struct AddBenchmark {
  explicit AddBenchmark(void (*add)(Command& bench));
};

// All of them.
void add_benchmarks(Command& bench);

}  // namespace brigade::lab
