// Words and options of a command line.
#pragma once

#include <brigade/lab/command_line.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::lab {

// --- Splits lines into words, parses whole numbers, and finds the known words nearest to a mistyped one.

// Splits a line at whitespace.
std::vector<std::string> words_of(const std::string& line);
// 42 for "42"; nullopt for text that is not just a whole number, or for more than 64 bits.
std::optional<int64_t> whole_number(std::string_view text);

// Up to `most` distinct known words, nearest first by edit distance (Levenshtein), ignoring case.
std::vector<std::string> nearest_words(const std::string& word, const std::vector<std::string>& known, size_t most);

// --- Checks of option values that several commands share. A refused value is wrong usage: exit status 2.

// A number from `least` to `most`.
ValueCheck number_from(double least, double most = std::numeric_limits<double>::infinity());
// A whole number from `least` to `most`. Also checks each value of a list, which numbers_in() converts.
ValueCheck whole_number_from(int64_t least, int64_t most);
template <class T>
std::vector<T> numbers_in(const std::vector<std::string>& words) {
  std::vector<T> numbers;
  for (const std::string& word : words)
    numbers.push_back(static_cast<T>(whole_number(word).value()));
  return numbers;
}
// More than 0, and finite.
ValueCheck positive_number();
// One of these words.
ValueCheck one_of(const std::vector<std::string>& words);
// A dtype by its name.
ValueCheck dtype_name();
// A regular expression, as std::regex takes it.
ValueCheck regular_expression();

}  // namespace brigade::lab
