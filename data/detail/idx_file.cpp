// Checks the header against the file's size before using it.
#include <brigade/data/detail/image_files.h>

#include <brigade/core/error.h>

namespace brigade::data::detail {
namespace {

uint32_t big_endian(std::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes.substr(0, 4))
    number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

std::string hexadecimal(uint32_t number) {
  std::string text = "0x";
  for (int shift = 28; shift >= 0; shift -= 4)
    text += "0123456789abcdef"[number >> shift & 15];
  return text;
}

}  // namespace

IdxFile read_idx(const std::string& path, int dimensions, std::string_view expected) {
  constexpr size_t kMost = size_t{1} << 30;
  std::string bytes = read_file(path, kMost, expected);
  const size_t header = 4 + 4 * static_cast<size_t>(dimensions);
  const auto magic = 0x0800U + static_cast<uint32_t>(dimensions);
  if (bytes.size() < 4) {
    throw IoError("{} holds {} bytes; expected {}, which begins with the magic number {}", path, bytes.size(), expected,
                  hexadecimal(magic));
  }
  if (const uint32_t found = big_endian(bytes); found != magic) {
    throw IoError("{} begins with the magic number {}, expected {}: {}. Are images and labels exchanged?", path,
                  hexadecimal(found), hexadecimal(magic), expected);
  }
  if (bytes.size() < header) {
    throw IoError("{} ends after {} of the {} bytes of its header; get the file again", path, bytes.size(), header);
  }
  IdxFile file;
  std::string sizes_in_words;
  // Floating point does not wrap around; the size of a file is far below 2^53.
  double count = 1;
  for (int i = 0; i < dimensions; ++i) {
    const uint32_t size = big_endian(std::string_view(bytes).substr(4 + 4 * static_cast<size_t>(i)));
    file.sizes.push_back(size);
    sizes_in_words += (i ? " x " : "") + std::to_string(size);
    count *= size;
  }
  if (const size_t found = bytes.size() - header; static_cast<double>(found) != count) {
    throw IoError("{} announces {} values and holds {}: it was cut short or changed; get the file again", path,
                  sizes_in_words, found);
  }
  bytes.erase(0, header);
  file.values = std::move(bytes);
  return file;
}

}  // namespace brigade::data::detail
