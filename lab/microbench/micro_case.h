// Microbenchmarks of one process: named cases that can be timed repeatedly, alternating with another program
// (bench/beside_torch.py).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

struct MicroCase {
  std::string suite;  // "ops", "autograd", "optim", "amp"
  std::string name;   // "matmul 512 forward"
  std::string dtype = "float32";
  // Per call, for rates; 0 if a rate is meaningless.
  double flops = 0;
  double bytes = 0;
  // Prepares the inputs of the calls. The returned function runs some calls and returns the microseconds of one.
  std::function<std::function<double()>()> prepare;
  std::string beside = "";  // the case of this suite to compare with; "": none
};

// A file of cases adds its own from a static object.
struct AddMicroCases {
  explicit AddMicroCases(std::vector<MicroCase> (*cases)());
};

// All cases of a suite, in the order in which they were added. Throws ValueError for a suite that does not exist.
std::vector<MicroCase> micro_cases(const std::string& suite);
// Throws ValueError that lists the known names.
MicroCase find_micro_case(const std::string& suite, const std::string& name);

// Samples of the microseconds of one call, for about `seconds` after a warm-up.
std::vector<double> time_micro_case(const MicroCase& micro_case, double seconds);

// The same for a prepared sample function: a warm-up, then about `seconds` of samples, at least 3.
std::vector<double> samples_for(const std::function<double()>& sample, double seconds);

// The mean microseconds of a call over `calls` calls of f.
double microseconds(int calls, const std::function<void()>& f);
// A sample function for an `f` that needs no preparation between calls. It makes as many calls as take a
// millisecond.
std::function<double()> repeated(std::function<void()> f);

}  // namespace brigade::lab
