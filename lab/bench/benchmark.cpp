#include <brigade/lab/bench/benchmark.h>

#include <vector>

namespace brigade::lab {

namespace {

using Add = void (*)(CLI::App& bench, int& exit_code);

std::vector<Add>& all() {
  static std::vector<Add> added;
  return added;
}

}  // namespace

AddBenchmark::AddBenchmark(Add add) { all().push_back(add); }

void add_benchmarks(CLI::App& bench, int& exit_code) {
  for (const Add add : all())
    add(bench, exit_code);
}

}  // namespace brigade::lab
