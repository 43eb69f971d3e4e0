// Runs a random program on one rank.
#pragma once

#include "spec.h"

#include <brigade/dist/groups/process_group.h>

#include <string>

namespace brigade::test::fuzz {

// "ok VALUES..." of all parameters at the end; or "error STEP TYPE". Then a line for each verdict,
// "KIND CAUSE FILE:LINE RANKS PARAMETERS", with "warning ITERATION" before it for each warning; "planted LINE"
// where the fault was made on this rank; the text of an error behind "| ".
std::string train(const Spec& spec, const dist::ProcessGroupPtr& group);
// The values that all ranks have to end with, from one process.
std::string train_alone(const Spec& spec);

}  // namespace brigade::test::fuzz
