// Numbers in messages and in printed trees: the shortest text that reads back as the same value
// ("0.1", "1e-05", "-1").
#pragma once

#include <charconv>
#include <string>

namespace brigade::nn::detail {

inline std::string text_of(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}
inline std::string text_of(bool value) { return value ? "true" : "false"; }

}  // namespace brigade::nn::detail
