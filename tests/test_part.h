// Tests that go through a list, in several entries of CTest.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace brigade::test {

// Whether the item at this place of a list is one for this process: BRIGADE_TEST_PART=2/4 has every fourth, from the second; without it all are (parts_of_... in tests/CMakeLists.txt). Throws std::runtime_error where the variable says
// something else.
inline bool is_of_this_part(size_t index) {
  const char* const part = std::getenv("BRIGADE_TEST_PART");
  size_t number = 1;
  size_t parts = 1;
  if (part && (std::sscanf(part, "%zu/%zu", &number, &parts) != 2 || number < 1 || number > parts))
    throw std::runtime_error(std::string("BRIGADE_TEST_PART: expected a part such as 2/4, got ") + part);
  return index % parts == number - 1;
}

}  // namespace brigade::test
