// A place in the user's source that can be kept, compared and told to another process: what a
// verdict points at, and what ranks tell each other of their lines.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>

namespace brigade {

struct Place {
  std::string file;   // with its folder: "examples/train.cpp"; "" when not known
  uint32_t line = 0;  // 0 when not known

  Place() = default;
  Place(std::string file, uint32_t line);
  // Not known where the location is not.
  Place(const SourceLocation& where);  // NOLINT: a location is a place

  // Whether it is known.
  explicit operator bool() const noexcept { return line != 0; }
  bool operator==(const Place&) const = default;
};

// "examples/train.cpp:12", the same text as of the location; "" when not known.
std::string to_string(const Place& place);
// No line of the user's: a guard in std::optional, emplaced, is made in a header of the standard library.
bool is_in_standard_library(const SourceLocation& where);

}  // namespace brigade
