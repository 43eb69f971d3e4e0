// Microbenchmarks of one process: named cases with a way to time them, so that a program can time
// one again and again, in turns with another program's (bench/beside_torch.py).
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab {

struct MicroCase {
  std::string suite;  // "ops", "autograd", "optim", "amp"
  std::string name;   // "matmul 512 forward"
  std::string dtype = "float32";
  // Of one call, for rates; 0 where a rate says nothing.
  double flops = 0;
  double bytes = 0;
  // Makes what the calls need; the result runs some calls and returns the microseconds of one.
  std::function<std::function<double()>()> prepare;
  std::string beside = "";  // the case of this suite that it is compared with; "": none
};

// A file of cases adds its own from a static object.
struct AddMicroCases {
  explicit AddMicroCases(std::vector<MicroCase> (*cases)());
};

// In the order of their names' suites; throws ValueError for a suite that does not exist.
std::vector<MicroCase> micro_cases(const std::string& suite);
// Throws ValueError that lists the names there are.
MicroCase find_micro_case(const std::string& suite, const std::string& name);

// Microseconds of one call, several times, after some to warm up; for about `seconds`.
std::vector<double> time_micro_case(const MicroCase& micro_case, double seconds);

// The same of a sample that has been prepared: some to warm up, then for about `seconds`, 3 at least.
std::vector<double> samples_for(const std::function<double()>& sample, double seconds);

// Microseconds of one of `calls` calls of f.
double microseconds(int calls, const std::function<void()>& f);
// A sample of a function that takes no preparation between calls; as many calls as make a
// millisecond.
std::function<double()> repeated(std::function<void()> f);

}  // namespace brigade::lab
