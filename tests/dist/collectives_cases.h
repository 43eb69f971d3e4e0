// Cases that hold for every backend; run by collectives_test.cpp and, on threads alone, by
// collectives_threads_test.cpp.
#pragma once

#include <string>

namespace brigade::test {

// Each checks with doctest's macros.
void check_all_reduce(const std::string& backend, int ranks);
void check_other_collectives(const std::string& backend, int ranks);
void check_many_pending(const std::string& backend, int ranks);
void check_texts(const std::string& backend, int ranks);

}  // namespace brigade::test
