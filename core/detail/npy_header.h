// The header of an npy file, from the Python dictionary that it is, and back.
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

// As NumPy writes it, not filled up: with room for the first size to grow in place.
std::string npy_header_text(const NpyHeader& header);

}  // namespace brigade::detail
