// The files of image data sets: where they are, and their formats, plain or compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::data::detail {

// --- Looks for a file of a data set, plain or compressed, in its possible folders.

// The first existing one of folder/file and folder/file.gz. Throws an IoError that lists the paths it tried.
std::string find_file(const std::string& dataset, const std::vector<std::string>& folders, const std::string& file);

// --- Reads whole files into memory, plain or gzip-compressed.

// The decompressed bytes of a gzip file; `expected` describes the expected file in errors. Throws an IoError that names
// the file: missing, not a regular file, not gzip, damaged or truncated, or more than `most` bytes when decompressed (a
// small file can expand to a thousand times its size).
std::string read_gzip(const std::string& path, size_t most, std::string_view expected);

// The bytes of a file, decompressed if it begins like a gzip file. Throws as above.
std::string read_file(const std::string& path, size_t most, std::string_view expected);

// --- The IDX format of the MNIST files (Y. LeCun, C. Cortes, C. Burges: "The MNIST database of handwritten digits"): a
// magic number, sizes, and the values row by row.
//
// The magic number is two zero bytes, the type of the values (8: unsigned bytes, the only one supported here) and the
// number of dimensions; each size is a 4-byte big-endian number.

struct IdxFile {
  std::vector<int64_t> sizes;
  std::string values;  // one byte each
};

// `expected` describes the expected file in errors. Plain or gzip-compressed. Throws an IoError that names the file,
// its content and the expected one: for another magic number, a truncated header, or more or fewer values than its
// sizes say.
IdxFile read_idx(const std::string& path, int dimensions, std::string_view expected);

// --- The binary files of CIFAR-10 (A. Krizhevsky: "The CIFAR-10 dataset", binary version): records of a label and 3072
// bytes, the red, green and blue values of 32 x 32 pixels, row by row.

inline constexpr size_t kCifarPixels = 3 * 32 * 32;

// Appends the records of a plain or gzip-compressed file. Throws an IoError that names the file, and the record if
// there is one: for a size that is not a whole number of records, a label above 9, or an empty file.
void read_cifar10(const std::string& path, std::string& pixels, std::vector<int64_t>& labels);

}  // namespace brigade::data::detail
