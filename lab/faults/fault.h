// Planted faults: small training steps that go wrong in a known way (or controls that must not be reported), with the
// verdict that is expected. Each lives in a file of its own and makes itself known by a static object.
#pragma once

#include <brigade/dist/diagnosis/verdict.h>
#include <brigade/dist/distributed_data_parallel.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

// What a fault may depend on.
struct FaultContext {
  dist::ProcessGroupPtr group;
  dist::DDPOptions options;  // to wrap with: the buckets of this run, and the strategy of the fixed run
  bool fixed = false;        // run the repaired program
};

struct Expectation {
  bool detected = true;                 // false: a control
  std::string kind;                     // "unused_parameters", "rank_failed", ...
  std::vector<std::string> parameters;  // names that the verdict must list, exactly
  std::vector<int> ranks;               // where they are missing; empty: on all ranks
  std::string cause;                    // name of the CauseKind
  std::string module;                   // path that the cause must name; "*" for any
  bool file_and_line = true;            // the cause must name a line of the fault's file
};

struct Fault {
  std::string id;  // "UNU-01"
  std::string title;
  Expectation expected;
  // The steps. Throws what Brigade reports. Returns all parameters that must be equal on all ranks afterwards.
  std::function<std::vector<Tensor>(const FaultContext&)> run;
  int ranks = 2;
  std::string file;  // the source file, as it stands in messages
};

struct AddFault {
  explicit AddFault(Fault fault, SourceLocation where = SourceLocation::current());
};

// By id.
const std::vector<Fault>& all_faults();
// Throws ValueError that names the nearest known ids.
const Fault& find_fault(const std::string& id);

}  // namespace brigade::lab
