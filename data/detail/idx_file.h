// The IDX format of the MNIST files (Y. LeCun, C. Cortes, C. Burges: "The MNIST database of
// handwritten digits"): a magic number, sizes, and the values row by row.
//
// The magic number is two zero bytes, the type of the values (8: unsigned bytes, the only one read
// here) and the number of dimensions; each size is 4 bytes, the highest first.
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

// `expected`: what the file should be, in words. Packed by gzip or not. Throws IoError that names the
// file and says what it holds and what was expected: another magic number, a header that is cut
// short, more or fewer values than its sizes say.
IdxFile read_idx(const std::string& path, int dimensions, std::string_view expected);

}  // namespace brigade::data::detail
