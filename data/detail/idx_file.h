// The IDX format of the MNIST files (Y. LeCun, C. Cortes, C. Burges: "The MNIST database of
// handwritten digits"): a magic number, sizes, and the values row by row.
//
// The magic number is two zero bytes, the type of the values (8: unsigned bytes, the only one supported here) and the
// number of dimensions; each size is a 4-byte big-endian number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::data::detail {

struct IdxFile {
  std::vector<int64_t> sizes;
  std::string values;  // one byte each
};

// `expected` describes the expected file in errors. Plain or gzip-compressed. Throws an IoError that names the file,
// its content and the expected one: for another magic number, a truncated header, or more or fewer values than its
// sizes say.
IdxFile read_idx(const std::string& path, int dimensions, std::string_view expected);

}  // namespace brigade::data::detail
