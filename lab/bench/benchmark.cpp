// The list of benchmarks that the static objects fill.
#include <brigade/lab/bench/benchmark.h>

#include <map>

namespace brigade::lab {

namespace {

using Add = void (*)(Command& bench);

std::multimap<int, Add>& all() {
  static std::multimap<int, Add> added;
  return added;
}

}  // namespace

AddBenchmark::AddBenchmark(int place, Add add) { all().emplace(place, add); }

void add_benchmarks(Command& bench) {
  for (const auto& [place, add] : all())
    add(bench);
}

}  // namespace brigade::lab
