// Running a planted fault and judging what was reported.
#pragma once

#include <brigade/lab/faults/fault.h>

#include <optional>
#include <string>
#include <vector>

namespace brigade::lab {

struct Diagnosis {
  bool detected = false;
  bool passed = false;   // as expected, and the advised fix works
  bool skipped = false;  // the backend cannot run it; why_not says why
  std::string why_not;   // what was not as expected
  std::string text;      // what was reported, as a rank that is not at fault has it; "" when nothing was
  std::vector<dist::Verdict> verdicts;
  // Whether the replicas were still equal when the error came; unknown when the group was gone.
  std::optional<bool> in_time;
  std::string group;  // of the ranks, when they ended: "threads", "nccl", ...
  double seconds = 0;
};

struct DiagnoseOptions {
  std::string backend = "threads";
  int ranks = 0;  // 0: the fault's own number
  double bucket_mb = 25;
  // "cuda": the ranks train on devices. Ranks that are threads send by NCCL then, where each has one of its own.
  std::string device = "cpu";
};

// Runs the fault, compares what every rank reported with the expectation, applies the advised fix and runs again: then
// nothing may be reported, and all ranks must end with equal parameters.
Diagnosis diagnose(const Fault& fault, const DiagnoseOptions& options);

// Verdicts as docs/reference/verdicts.md describes them, as a text of JSON.
std::string to_json(const std::vector<dist::Verdict>& verdicts);

}  // namespace brigade::lab
