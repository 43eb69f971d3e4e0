// Formats text as JSON, for files that are assembled piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace brigade {

// The text in quotation marks, with control characters as \u00XX.
std::string json_string(std::string_view text);

}  // namespace brigade
