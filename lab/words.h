// Splits lines into words, parses whole numbers, and finds the known words nearest to a mistyped one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::lab {

// Splits a line at whitespace.
std::vector<std::string> words_of(const std::string& line);
// 42 for "42"; nullopt for text that is not just a whole number, or for more than 64 bits.
std::optional<int64_t> whole_number(std::string_view text);

// Up to `most` distinct known words, nearest first by edit distance (Levenshtein), ignoring case.
std::vector<std::string> nearest_words(const std::string& word, const std::vector<std::string>& known, size_t most);

}  // namespace brigade::lab
