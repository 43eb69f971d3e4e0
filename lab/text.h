// A text for character-level models: Milton's Paradise Lost (lab/data/README.md names the source).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::lab {

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
