// Running a planted fault and judging what was reported.
#pragma once

#include <brigade/lab/faults/fault.h>

#include <string>
#include <vector>

namespace brigade::lab {

struct Diagnosis {
  bool detected = false;
  bool passed = false;  // as expected, and the advised fix works
  std::string why_not;  // what was not as expected
  std::string text;     // the error as each rank raised it, "" when none
  std::vector<dist::Verdict> verdicts;
  double seconds = 0;
};

struct DiagnoseOptions {
  std::string backend = "threads";
  int ranks = 0;  // 0: the fault's own number
  double bucket_mb = 25;
};

// Runs the fault, compares what every rank raised with the expectation, applies the advised fix
// (find_unused_parameters=true) and runs again: then all ranks must end with equal parameters.
Diagnosis diagnose(const Fault& fault, const DiagnoseOptions& options);

}  // namespace brigade::lab
