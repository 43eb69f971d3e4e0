// XXH3 by the xxHash library, and the position of the checksums in the header.
#include <brigade/core/detail/safetensors_header.h>

#include <brigade/core/error.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <charconv>
#include <string_view>

namespace brigade::detail {
namespace {

constexpr size_t kDigits = 16;

// The position of the header's own digits; npos if Brigade did not write the header.
size_t place_in(const std::string& header) {
  const std::string before = std::string("\"") + kChecksumsKey + "\":\"";
  const size_t found = header.find(before);
  const size_t place = found + before.size();
  return found == header.npos || place + kDigits > header.size() ? header.npos : place;
}

}  // namespace

uint64_t checksum(const void* data, size_t bytes) noexcept { return XXH3_64bits(data, bytes); }

std::string in_hexadecimal(uint64_t checksum) {
  std::string digits(kDigits, '0');
  for (size_t i = kDigits; i-- > 0; checksum >>= 4)
    digits[i] = "0123456789abcdef"[checksum & 15];
  return digits;
}

std::string checksums_text(std::span<const uint64_t> tensors) {
  std::string text(kDigits, '0');
  for (const uint64_t each : tensors)
    text += " " + in_hexadecimal(each);
  return text;
}

void put_header_checksum(std::string& header) {
  const std::string digits = in_hexadecimal(checksum(header.data(), header.size()));
  header.replace(place_in(header), kDigits, digits);
}

std::vector<uint64_t> read_checksums(const std::string& value, std::string header, size_t tensors,
                                     const std::string& path) {
  const auto damaged = [&](const std::string& found) {
    return IoError(
        "{}: {}: the file is damaged, or another program has changed it and kept its checksums; expected the file as it "
        "was saved (without \"{}\" in its metadata nothing is compared)",
        path, found, kChecksumsKey);
  };
  std::vector<uint64_t> checksums;
  const char* const end = value.data() + value.size();
  for (const char* at = value.data(); end - at >= static_cast<std::ptrdiff_t>(kDigits); at += kDigits + 1) {
    std::from_chars(at, at + kDigits, checksums.emplace_back(), 16);
    // Lowercase hexadecimal digits only.
    if (in_hexadecimal(checksums.back()) != std::string_view(at, kDigits))
      throw damaged("a checksum is not a hexadecimal number of 16 digits");
  }
  if (checksums.size() != tensors + 1 || value.size() != checksums.size() * (kDigits + 1) - 1)
    throw damaged("the checksums are not one for the header and one for each tensor");
  const size_t place = place_in(header);
  if (place != header.npos) header.replace(place, kDigits, kDigits, '0');
  if (place == header.npos || checksum(header.data(), header.size()) != checksums[0])
    throw damaged("the header is not the one that was saved");
  return checksums;
}

}  // namespace brigade::detail
