// The data files of the program: where they are, the digits and a text.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::lab {

// --- Finds the program's data files, and the sources that it shows.

// The path of a file of lab/data: in $BRIGADE_DATA_DIR, in the source tree the program was built from, or in
// ../share/brigade/data relative to the program. Throws IoError that names the searched paths and what is missing
// ("digits data").
std::string data_path(const std::string& file, const std::string& about);

// The path of a source file, given its path from the root ("lab/faults/unused/no_grad.cpp"): in the source tree the
// program was built from, or in ../share/brigade relative to the program, where the planted faults are installed.
// Throws IoError that names the searched paths.
std::string source_path(const std::string& file);

// --- The file of the UCI digits: gzip-compressed CSV, one example per line.

inline constexpr int kDigitPixels = 64;

struct DigitsFile {
  std::vector<float> pixels;    // 64 per example, 0..1
  std::vector<int64_t> labels;  // 0..9
};

// Throws what load_digits throws.
DigitsFile read_digits_file(const std::string& path);

// --- The UCI digits: 1,797 real handwritten digits of 8 x 8 pixels (lab/data/README.md names the source).

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

// --- A text for character-level models: Milton's Paradise Lost (lab/data/README.md names the source).

// Characters are encoded as their index in the alphabet.
struct Text {
  std::string alphabet;        // the characters that occur, in the order of their codes
  std::vector<int64_t> train;  // the first nine tenths
  std::vector<int64_t> test;   // the last tenth

  std::string letters_of(const std::vector<int64_t>& codes) const;
};

// Reads a gzip-compressed text. Throws IoError that names the file when it is missing, truncated,
// not gzip, or empty.
Text load_text(const std::string& path);
// See data_path().
std::string text_path();

}  // namespace brigade::lab
