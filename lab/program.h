// The common main function of the programs `brigade` and `brigade-bench`.
#pragma once

#include <brigade/lab/command_line.h>

#include <functional>

namespace brigade::lab {

// The whole of a main(): parses the arguments, runs the command that they name, reports an error in one line on
// standard error, and checks that all output was written. Returns the exit status (docs/cli.md). In addition to the
// commands of `add_commands` there is `rank-job`, with which a program starts its ranks.
int run_program(int argc, char** argv, const std::function<void(Command&)>& add_commands);

}  // namespace brigade::lab
