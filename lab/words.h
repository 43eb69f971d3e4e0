// Words of a line, numbers among them, and the known words that are nearest to a mistyped one.
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

// At most `most` of these words, those first that take the fewest letters to put in, take out or replace
// (Levenshtein), whatever the case; each once.
std::vector<std::string> nearest_words(const std::string& word, const std::vector<std::string>& known, size_t most);

}  // namespace brigade::lab
