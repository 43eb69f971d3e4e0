// Runs the program `brigade` as a user would.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::test {

struct Outcome {
  int status = 0;      // exit status; 128 + signal when a signal ended it
  std::string output;  // standard output and standard error
  double seconds = 0;
};

// `brigade` with these arguments, through a shell; `environment` in front ("A=1 B=2"). Ended after the deadline (status
// 124).
Outcome run_program(const std::string& arguments, const std::string& environment = "", int deadline_s = 240);
// The same, with standard output and standard error apart.
struct Streams {
  int status = 0;
  std::string output, errors;
};
Streams run_program_apart(const std::string& arguments, const std::string& environment = "", int deadline_s = 240);
// A copy of `brigade` that stands alone in this folder.
Outcome run_copied_program(const std::string& folder, const std::string& arguments);
// The same, killed (SIGKILL) as soon as `is_time` says so. Of the output nothing is kept.
Outcome run_program_until(const std::string& arguments, const std::function<bool()>& is_time, int deadline_s = 240);
bool contains(const std::string& text, const std::string& part);

// Of a list that a test goes through: whether the one at `index` is of the part that BRIGADE_TEST_PART names, "2/4" for every
// fourth from the second; all are where it names none. CTest runs the parts beside each other (parts_of_... in
// tests/CMakeLists.txt).
bool is_of_this_part(size_t index);

}  // namespace brigade::test
