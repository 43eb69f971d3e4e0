// The UCI digits: 1,797 real handwritten digits of 8 x 8 pixels (lab/data/README.md names the
// source).
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::lab {

struct Examples {
  Tensor images;  // [n, 1, 8, 8], gray values divided by 16
  Tensor labels;  // [n] int64, 0..9
};

struct Digits {
  Examples train;  // 1,438 examples
  Examples test;   // 359: every fifth of the file
};

// Reads a gzip-compressed CSV file. Throws IoError that names the file, and the line if there is one, when the file
// is missing, truncated, not gzip, or has a line that is not 65 whole numbers in range.
Digits load_digits(const std::string& path, DType dtype = kFloat32);

// See data_path().
std::string digits_path();

}  // namespace brigade::lab
