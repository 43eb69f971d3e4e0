// Cases of ZeroRedundancyOptimizer that hold for every backend; run by zero_test.cpp and, on threads alone, by
// zero_threads_test.cpp.
#pragma once

#include <string>

namespace brigade::test {

void check_zero_equals_plain(const std::string& backend, int ranks);
void check_zero_state_reloaded(const std::string& backend, int ranks);
void check_zero_shards(const std::string& backend, int ranks);
void check_zero_large_state(const std::string& backend, int ranks);
void check_zero_refusals(const std::string& backend, int ranks);

}  // namespace brigade::test
