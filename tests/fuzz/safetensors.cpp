// Reads the bytes as a safetensors file: every tensor both ways; then the header is written and read again.
#include "input.h"

#include <brigade/core/detail/safetensors_header.h>

using namespace brigade;

namespace {

void read_tensors(const SafetensorsFile& file) {
  for (const SafetensorsEntry& entry : file.entries()) {
    Tensor copied;
    try {
      copied = file.tensor(entry.name);
    } catch (const Error& error) {
      fuzz::require(std::strstr(error.what(), file.path().c_str()), "an error names the file");
      continue;
    }
    const Tensor mapped = file.mapped(entry.name);
    fuzz::require(copied.nbytes() == entry.end - entry.begin, "a tensor has the bytes of its entry");
    fuzz::require(copied.nbytes() == 0 || std::memcmp(copied.raw_data(), mapped.raw_data(), copied.nbytes()) == 0,
                  "a tensor holds the same, read or mapped");
    if (copied.numel() > 0) copied.to_vector<double>();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::run(data, size, [](const std::string& path) {
    const SafetensorsFile file(path);
    read_tensors(file);
    const std::string text = detail::safetensors_header_text(file.entries(), file.metadata());
    const uint64_t bytes = file.entries().empty() ? 0 : file.entries().back().end;
    const detail::SafetensorsHeader again = detail::parse_safetensors_header(text, bytes, path);
    fuzz::require(again.metadata == file.metadata(), "the metadata comes back");
    fuzz::require(detail::safetensors_header_text(again.entries, again.metadata) == text, "the header comes back");
  });
}
