// Finds cases by name, and times one: a warm-up, then samples of about a millisecond each.
#include <brigade/lab/microbench/micro_case.h>

#include <brigade/core/error.h>

#include <algorithm>
#include <chrono>
#include <memory>

namespace brigade::lab {
namespace {

using Clock = std::chrono::steady_clock;

std::vector<std::vector<MicroCase> (*)()>& tables() {
  static std::vector<std::vector<MicroCase> (*)()> all;
  return all;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

}  // namespace

AddMicroCases::AddMicroCases(std::vector<MicroCase> (*cases)()) { tables().push_back(cases); }

std::vector<MicroCase> micro_cases(const std::string& suite) {
  std::vector<MicroCase> found;
  for (const auto table : tables()) {
    for (MicroCase& each : table()) {
      if (each.suite == suite) found.push_back(std::move(each));
    }
  }
  if (found.empty()) throw ValueError("there are no microbenchmarks '{}'", suite);
  return found;
}

MicroCase find_micro_case(const std::string& suite, const std::string& name) {
  std::string names;
  for (MicroCase& each : micro_cases(suite)) {
    if (each.name == name) return std::move(each);
    names += (names.empty() ? "" : ", ") + each.name;
  }
  throw ValueError("there is no case '{}' in {}; there are: {}", name, suite, names);
}

std::vector<double> time_micro_case(const MicroCase& micro_case, double seconds) {
  return samples_for(micro_case.prepare(), seconds);
}

std::vector<double> samples_for(const std::function<double()>& sample, double seconds) {
  const auto warm_up = Clock::now();
  do {
    sample();
  } while (seconds_since(warm_up) < seconds / 4);
  std::vector<double> samples;
  const auto begin = Clock::now();
  while (samples.size() < 3 || (seconds_since(begin) < seconds && samples.size() < 10000))
    samples.push_back(sample());
  return samples;
}

double microseconds(int calls, const std::function<void()>& f) {
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i)
    f();
  return seconds_since(begin) * 1e6 / calls;
}

std::function<double()> repeated(std::function<void()> f) {
  const auto calls = std::make_shared<int>(0);
  return [f = std::move(f), calls] {
    if (*calls == 0) {
      f();
      *calls = std::clamp(static_cast<int>(1000 / std::max(microseconds(1, f), 0.01)), 1, 100000);
    }
    return microseconds(*calls, f);
  };
}

}  // namespace brigade::lab
