// Checksums of a safetensors file: one of its header and one of each tensor, stored as a text in its metadata.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace brigade::detail {

// The key of the checksums in the metadata.
inline constexpr const char* kChecksumsKey = "brigade/xxh3";

// 64-bit XXH3 (https://github.com/Cyan4973/xxHash).
uint64_t checksum(const void* data, size_t bytes) noexcept;

// "0123456789abcdef": 16 digits.
std::string in_hexadecimal(uint64_t checksum);
// The value of that metadata, in the order of the file, with zeros in the place of the header's checksum.
std::string checksums_text(std::span<const uint64_t> tensors);
// Replaces those zeros in `header` by the checksum of `header`, computed with the zeros in place.
void put_header_checksum(std::string& header);

// Parses the checksums of the header and the tensors from the value of the metadata in `header`.
// Throws IoError that begins with `path` if there are not `tensors` + 1 of them, or if the header
// is not the one that was saved.
std::vector<uint64_t> read_checksums(const std::string& value, std::string header, size_t tensors,
                                     const std::string& path);

}  // namespace brigade::detail
