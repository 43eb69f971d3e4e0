// The message of the exception that an action throws, and its places in full.
#pragma once

#include <brigade/core/error.h>

#include <algorithm>
#include <exception>
#include <string>

namespace brigade::test {

std::string error_of(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The message of an E; "another error: ..." for any other std::exception, "nothing" if none is thrown.
template <class E>
std::string text_of(const auto& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another error: ") + error.what();
  }
  return "nothing";
}

// "at gan.cpp:17 ... at line 30" gives "at gan.cpp:17 ... at gan.cpp:30".
inline std::string with_whole_places(std::string text) {
  std::string file;
  for (size_t begin = 0; begin < text.size(); begin = text.find_first_of(" (\n", begin)) {
    begin = std::min(text.size(), text.find_first_not_of(" (\n", begin));
    const size_t colon = std::min(text.size(), text.find_first_of(": (\n", begin));
    const bool is_line = text.compare(begin, 5, "line ") == 0 && begin + 5 < text.size() && text[begin + 5] >= '0' &&
                         text[begin + 5] <= '9';
    if (is_line) text.replace(begin, 5, file + ":");
    const std::string named = text.substr(begin, colon - begin);
    if (colon < text.size() && text[colon] == ':' && named.find('.') != std::string::npos) file = named;
  }
  return text;
}

}  // namespace brigade::test
