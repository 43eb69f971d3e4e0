// Reads whole files into memory, plain or gzip-compressed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::data::detail {

// The decompressed bytes of a gzip file; `expected` describes the expected file in errors. Throws an IoError that names
// the file: missing, not a regular file, not gzip, damaged or truncated, or more than `most` bytes when decompressed (a
// small file can expand to a thousand times its size).
std::string read_gzip(const std::string& path, size_t most, std::string_view expected);

// The bytes of a file, decompressed if it begins like a gzip file. Throws as above.
std::string read_file(const std::string& path, size_t most, std::string_view expected);

}  // namespace brigade::data::detail
