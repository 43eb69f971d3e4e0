// Parses a number on a command line.
#pragma once

#include <charconv>
#include <string_view>
#include <system_error>

// Returns a number above 0, or 0 if the text is not such a number.
template <class Number = int>
Number number_in(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value > 0 ? value : 0;
}
