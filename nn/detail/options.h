// Options of layers: numbers in texts, and options that are preceded by sizes.
#pragma once

#include <brigade/core/error.h>

#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <string>

namespace brigade::nn::detail {

// --- Numbers in messages and in printed trees: the shortest text that reads back as the same value ("0.1", "1e-05",
// "-1").

inline std::string text_of(double value) {
  char buffer[32];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value).ptr;
  return std::string(buffer, end);
}
inline std::string text_of(bool value) { return value ? "true" : "false"; }

// --- Options of a layer that are preceded by its sizes: nn::Linear(6, 10, {.bias = false}).

template <class Options>
struct GivenSize {
  const char* name;
  int64_t Options::*member;
  int64_t value;
};

// Throws ValueError if the options also contain the size, with a different value.
template <class Options>
Options with_sizes(Options options, const char* layer, std::initializer_list<GivenSize<Options>> sizes) {
  for (const auto& [name, member, value] : sizes) {
    int64_t& among = options.*member;
    if (among != 0 && among != value) {
      throw ValueError(std::string(layer) + ": " + name + " is " + std::to_string(value) + " before the options and " +
                       std::to_string(among) + " among them; give it once");
    }
    among = value;
  }
  return options;
}

}  // namespace brigade::nn::detail
