// Runs a program line by line. A refused line leaves its results unset, and lines that need them are skipped; a refused
// backward ends the program, since it is unspecified which gradients it had accumulated by then.
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
  std::map<std::string, Snapshot> variables, gradients;  // at the end; undefined tensors are omitted
  // After each line: its results, or the tensor it modified. Filled only with `with_trace`.
  std::vector<std::map<std::string, Snapshot>> trace;
  // Describes a malformed line, which is an error of the program's author; "" if there is none.
  std::string malformed;

  nlohmann::json to_json() const;
};

Result run(const Program& program, bool with_trace = false);

}  // namespace brigade::differential
