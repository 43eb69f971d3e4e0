// Words of a line, and numbers among them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::lab {

// What spaces and tabs part.
std::vector<std::string> words_of(const std::string& line);
// 42 of "42"; nothing of what is more than a whole number, or larger than 64 bits.
std::optional<int64_t> whole_number(std::string_view text);

}  // namespace brigade::lab
