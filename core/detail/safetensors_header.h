// The header of a safetensors file: parsed from JSON and checked, and written as JSON.
#pragma once

#include <brigade/core/safetensors.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace brigade::detail {

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

}  // namespace brigade::detail
