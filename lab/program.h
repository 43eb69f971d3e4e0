// What the programs `brigade` and `brigade-bench` do alike.
#pragma once

#include <brigade/lab/command_line.h>

#include <functional>

namespace brigade::lab {

// The whole of a main(): reads the arguments, runs the command that they name, tells an error in one line on standard error and
// sees to it that all output was written. Returns the exit status (docs/cli.md). `rank-job`, by which a program starts its ranks,
// is there besides what `add_commands` adds.
int run_program(int argc, char** argv, const std::function<void(Command&)>& add_commands);

}  // namespace brigade::lab
