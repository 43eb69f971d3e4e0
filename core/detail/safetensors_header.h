// The header of a safetensors file, and its checksums.
#pragma once

#include <brigade/core/safetensors.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::detail {

// --- The header of a safetensors file: parsed from JSON and checked, and written as JSON.

// The largest header that the reference implementation reads.
inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsHeader {
  SafetensorsMetadata metadata;
  std::vector<SafetensorsEntry> entries;  // in the order of their bytes
};

// `json` describes `data_bytes` bytes. Throws IoError whose text begins with `path`.
SafetensorsHeader parse_safetensors_header(std::string_view json, uint64_t data_bytes, const std::string& path);

// Without padding. Throws ValueError for text that is not UTF-8.
std::string safetensors_header_text(const std::vector<SafetensorsEntry>& entries, const SafetensorsMetadata& metadata);

// "F32", and back; nothing for a dtype that Brigade does not have.
const char* safetensors_dtype(DType dtype) noexcept;
std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept;

// --- Checksums of a safetensors file: one of its header and one of each tensor, stored as a text in its metadata.

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
