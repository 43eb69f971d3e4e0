// Cases that hold for every backend. One is added where it is defined, in a file X_cases.cpp, by a static object, and runs
// as two of doctest's cases: "between processes: NAME" and "between threads: NAME". They are the ctest entries
// dist/X_cases_processes and dist/X_cases_threads, the latter under the thread sanitizer as well.
#pragma once

#include "on_ranks.h"

#include <brigade/core/tensor.h>

namespace brigade::test {

// The numbers of ranks of each run, by backend.
struct Sizes {
  std::vector<int> threads = {2, 3, 4};
  std::vector<int> shm = {2, 3, 4};
  std::vector<int> others = {3};          // each other backend of this build
  std::vector<std::string> layouts = {};  // more runs of "hosts" (processes.h): "AABB"
};
inline Sizes everywhere(const std::vector<int>& sizes, std::vector<std::string> layouts = {}) {
  return {.threads = sizes, .shm = sizes, .others = sizes, .layouts = std::move(layouts)};
}

struct AddRankCase {
  // `check` starts the ranks itself, as often as it likes, and checks with doctest's macros.
  AddRankCase(const std::string& name, const BackendCheck& check, const Sizes& sizes = {},
              SourceLocation where = SourceLocation::current());
  // `body` runs on every rank, and returns "", or what was wrong.
  AddRankCase(const std::string& name, const Body& body, const Sizes& sizes = {},
              SourceLocation where = SourceLocation::current());
};

}  // namespace brigade::test
