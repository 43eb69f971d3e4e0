// The registry of `brigade bench` subcommands: each benchmark's file adds its own from a static object.
#pragma once

#include <brigade/lab/command_line.h>

namespace brigade::lab {

// `add` adds subcommands to `bench`. The help lists them by `place`, then in the order in which they
// were added.
struct AddBenchmark {
  AddBenchmark(int place, void (*add)(Command& bench));
};

// Adds all registered subcommands, ordered by place.
void add_benchmarks(Command& bench);

}  // namespace brigade::lab
