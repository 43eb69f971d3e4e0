// The file of the UCI digits: gzip-compressed CSV, one example per line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::lab {

inline constexpr int kDigitPixels = 64;

struct DigitsFile {
  std::vector<float> pixels;    // 64 per example, 0..1
  std::vector<int64_t> labels;  // 0..9
};

// Throws what load_digits throws.
DigitsFile read_digits_file(const std::string& path);

}  // namespace brigade::lab
