// Cases of model averaging that hold for every backend; run by model_averaging_test.cpp and, on threads alone, by
// model_averaging_threads_test.cpp.
#pragma once

#include <string>

namespace brigade::test {

void check_average(const std::string& backend, int ranks);
void check_local_sgd(const std::string& backend, int ranks);

}  // namespace brigade::test
