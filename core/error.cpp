// A source location as text: folder, file and line.
#include <brigade/core/error.h>

#include <string_view>

namespace brigade {

std::string to_string(const std::source_location& where) {
  if (where.line() == 0) return "";
  std::string_view file = where.file_name();
  // Two components tell files apart without drowning the message in directories.
  size_t slash = file.rfind('/');
  if (slash != std::string_view::npos && slash > 0) {
    const size_t parent = file.rfind('/', slash - 1);
    if (parent != std::string_view::npos) file.remove_prefix(parent + 1);
  }
  return std::string(file) + ":" + std::to_string(where.line());
}

}  // namespace brigade
