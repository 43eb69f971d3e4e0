// Parses and writes the header of an npy file, which is a Python dictionary.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::detail {

struct NpyHeader {
  std::string descr;  // "<f4"
  bool fortran_order = false;
  std::vector<int64_t> shape;
};

// Throws IoError whose text begins with `path`.
NpyHeader parse_npy_header(std::string_view text, const std::string& path);

// Formats the header as NumPy does, without padding, but with room for the outermost size to grow in place.
std::string npy_header_text(const NpyHeader& header);

}  // namespace brigade::detail
