// Reads JSON from untrusted sources.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace brigade::lab {

// Copying or printing a deeper value would overflow the stack.
inline constexpr int64_t kDeepestJson = 64;

// Returns a discarded value (is_discarded()) when the text is not JSON, or is nested deeper.
nlohmann::json parse_json(std::string_view text);
// The same for a file. Throws like read_text().
nlohmann::json read_json(const std::string& reader, const std::string& file);

// A file in memory.
struct FileText {
  std::shared_ptr<char> text;
  size_t size = 0;
  std::string_view view() const { return {text.get(), size}; }
};
// Throws IoError "READER: cannot read FILE: why" (reader: "explain") when the file cannot be read. Only regular
// files are read, since a pipe may block and a device may be endless.
FileText read_text(const std::string& reader, const std::string& file);

}  // namespace brigade::lab
