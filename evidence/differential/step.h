// The steps that program lines execute. Each family file in steps/ registers its steps from a static object; any other
// name is an operation of the table (lab/reference/operation.h).
#pragma once

#include "differential/run.h"

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

// The state of a running program.
struct Session {
  std::map<std::string, Tensor> variables;
  std::vector<std::unique_ptr<AutoGradMode>> grad_modes;  // active ones, innermost last
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

// Returns null for an unknown name.
Step find_step(const std::string& name);

}  // namespace brigade::differential
