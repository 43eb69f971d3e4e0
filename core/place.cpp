// Converts a location that the compiler filled in to a place that can be compared and sent.
#include <brigade/core/place.h>

#include <string_view>
#include <utility>

namespace brigade {

Place::Place(std::string file, uint32_t line) : file(std::move(file)), line(line) {}

Place::Place(const SourceLocation& where) : file(to_string(where)), line(where.line()) {
  // The file as messages name it: the text of the location without the line.
  if (line != 0) file.resize(file.rfind(':'));
}

std::string to_string(const Place& place) { return place ? place.file + ":" + std::to_string(place.line) : ""; }

bool is_in_standard_library(const SourceLocation& where) {
  const std::string_view file = where.file_name();
  return file.find("/include/c++/") != std::string_view::npos || file.find("/c++/v1/") != std::string_view::npos;
}

}  // namespace brigade
