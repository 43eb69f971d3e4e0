// A place in the user's source that can be stored, compared and sent to another process: for
// verdicts, and for the lines that ranks exchange.
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
  // Unknown if the location is unknown.
  Place(const SourceLocation& where);  // NOLINT: a location is a place

  // Whether it is known.
  explicit operator bool() const noexcept { return line != 0; }
  bool operator==(const Place&) const = default;
};

// "examples/train.cpp:12", the same text as for the location; "" when not known.
std::string to_string(const Place& place);
// "at gan.cpp:17 ... at gan.cpp:30" gives "at gan.cpp:17 ... at line 30": the file that was named last is not repeated.
std::string with_short_places(std::string text);
// Whether it is not a line of the user's: a guard emplaced in a std::optional is made in a standard-library header.
bool is_in_standard_library(const SourceLocation& where);

}  // namespace brigade
