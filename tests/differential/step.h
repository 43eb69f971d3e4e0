// What a line of a program does. Each family's file in steps/ adds its own from a static object; a name that none of
// them has is an operation of the table (lab/reference/operation.h).
#pragma once

#include "differential/program.h"

#include <brigade/autograd/grad_mode.h>
#include <brigade/lab/reference/operation.h>

#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::differential {

using lab::reference::Arguments;
using lab::reference::Inputs;
using lab::reference::Outputs;

// What a running program holds.
struct Session {
  std::map<std::string, Tensor> variables;
  std::vector<std::unique_ptr<AutoGradMode>> grad_modes;  // those that are open, the innermost last
};

struct Call {
  Session& session;
  const Line& line;
  const Inputs& in;
  const Arguments& args;
};

using Step = Outputs (*)(const Call& call);

struct AddSteps {
  AddSteps(std::initializer_list<std::pair<const char*, Step>> steps);
};

// Null when there is none.
Step find_step(const std::string& name);

}  // namespace brigade::differential
