// Text as JSON writes it, for files that are put together piece by piece.
#pragma once

#include <string>
#include <string_view>

namespace brigade {

// In quotation marks; control characters as \u00XX.
std::string json_string(std::string_view text);

}  // namespace brigade
