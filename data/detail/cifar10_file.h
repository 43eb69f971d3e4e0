// The binary files of CIFAR-10 (A. Krizhevsky: "The CIFAR-10 dataset", binary version): records of a
// label and 3072 bytes, the red, the green and the blue values of 32 x 32 pixels, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brigade::data::detail {

inline constexpr size_t kCifarPixels = 3 * 32 * 32;

// Adds the records of a file, packed by gzip or not. Throws IoError that names the file, and the
// record where there is one: a size that is no whole number of records, a label above 9, nothing.
void read_cifar10(const std::string& path, std::string& pixels, std::vector<int64_t>& labels);

}  // namespace brigade::data::detail
