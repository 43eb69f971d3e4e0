// The list of benchmarks that static objects fill.
#include <brigade/lab/bench/benchmark.h>

#include <vector>

namespace brigade::lab {

namespace {

using Add = void (*)(Command& bench);

std::vector<Add>& all() {
  static std::vector<Add> added;
  return added;
}

}  // namespace

AddBenchmark::AddBenchmark(Add add) { all().push_back(add); }

void add_benchmarks(Command& bench) {
  for (const Add add : all())
    add(bench);
}

}  // namespace brigade::lab
