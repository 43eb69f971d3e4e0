// JSON from outside.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace brigade::lab {

// To copy or to print what is nested deeper would take the stack.
inline constexpr int64_t kDeepestJson = 64;

// A discarded value (is_discarded()) for what is not JSON, or is nested deeper.
nlohmann::json parse_json(std::string_view text);
// The same of a file; throws as read_text().
nlohmann::json read_json(const std::string& reader, const std::string& file);

// A file in memory.
struct FileText {
  std::shared_ptr<char> text;
  size_t size = 0;
  std::string_view view() const { return {text.get(), size}; }
};
// Throws IoError "READER: cannot read FILE: why" (reader: "explain") where it cannot be read; no
// other than a regular file can, since a pipe may wait and a device need not end.
FileText read_text(const std::string& reader, const std::string& file);

}  // namespace brigade::lab
