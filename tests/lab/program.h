// Runs the program `brigade` as a user would.
#pragma once

#include <functional>
#include <string>

namespace brigade::test {

struct Outcome {
  int status = 0;      // exit status; 128 + signal if a signal ended it
  std::string output;  // standard output and standard error
  double seconds = 0;
};

// Runs `brigade` with these arguments through a shell; `environment` comes first ("A=1 B=2"). Killed after the deadline
// (status 124).
Outcome run_program(const std::string& arguments, const std::string& environment = "", int deadline_s = 240);
// The same, with standard output and standard error separate.
struct Streams {
  int status = 0;
  std::string output, errors;
};
Streams run_program_apart(const std::string& arguments, const std::string& environment = "", int deadline_s = 240);
// Runs a copy of `brigade` that is alone in this folder.
Outcome run_copied_program(const std::string& folder, const std::string& arguments);
// The same as run_program, killed (SIGKILL) as soon as `is_time` returns true. The output is discarded.
Outcome run_program_until(const std::string& arguments, const std::function<bool()>& is_time, int deadline_s = 240);
bool contains(const std::string& text, const std::string& part);

}  // namespace brigade::test
