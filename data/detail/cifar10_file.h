// The binary files of CIFAR-10 (A. Krizhevsky: "The CIFAR-10 dataset", binary version): records of a label and 3072
// bytes, the red, green and blue values of 32 x 32 pixels, row by row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace brigade::data::detail {

inline constexpr size_t kCifarPixels = 3 * 32 * 32;

// Appends the records of a plain or gzip-compressed file. Throws an IoError that names the file, and the record if
// there is one: for a size that is not a whole number of records, a label above 9, or an empty file.
void read_cifar10(const std::string& path, std::string& pixels, std::vector<int64_t>& labels);

}  // namespace brigade::data::detail
