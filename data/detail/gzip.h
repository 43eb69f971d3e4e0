// Whole files in memory, packed by gzip or not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::data::detail {

// The bytes of a gzip file, unpacked; `expected` is what an error says of the file that should have
// come. Throws IoError that names the file: missing, not a regular file, not gzip, damaged or cut
// short, or more than `most` bytes when unpacked (a small file can unpack to a thousand times its
// size).
std::string read_gzip(const std::string& path, size_t most, std::string_view expected);

// The bytes of a file, unpacked where it begins as a gzip file does. Throws as above.
std::string read_file(const std::string& path, size_t most, std::string_view expected);

}  // namespace brigade::data::detail
