// Runs a program line by line. A line that is refused leaves its results unset, and lines that need them are passed
// over; a refused backward ends the program, since which gradients it had reached by then is nobody's promise.
#pragma once

#include "differential/program.h"
#include "differential/snapshot.h"

#include <map>
#include <string>
#include <vector>

namespace brigade::differential {

struct Refusal {
  size_t line = 0;
  std::string kind;  // "ShapeError", ...
  std::string message;
};

struct Result {
  std::vector<Refusal> refusals;
  std::map<std::string, Snapshot> variables, gradients;  // in the end; names without a tensor are left out
  // After each line: its results, or the tensor it worked on. Only when asked for.
  std::vector<std::map<std::string, Snapshot>> trace;
  // A line that this program cannot run, which is the fault of whoever wrote it; "" otherwise.
  std::string malformed;

  nlohmann::json to_json() const;
};

Result run(const Program& program, bool with_trace = false);

}  // namespace brigade::differential
