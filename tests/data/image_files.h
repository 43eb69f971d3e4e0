// Files in the formats of MNIST and CIFAR-10, small ones, written by the test.
#pragma once

#include <core/temporary_folder.h>

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::test {

inline std::string big_endian(uint32_t number) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift & 255);
  return bytes;
}

inline std::string idx_bytes(uint32_t magic, const std::vector<uint32_t>& sizes, const std::string& values) {
  std::string bytes = big_endian(magic);
  for (const uint32_t size : sizes)
    bytes += big_endian(size);
  return bytes + values;
}

// Pixel p of image i is i + p, modulo 256.
inline std::string pixels_of(int images, int each) {
  std::string values;
  for (int i = 0; i < images; ++i)
    for (int p = 0; p < each; ++p)
      values += static_cast<char>((i + p) % 256);
  return values;
}

inline std::string idx_images(int count) {
  return idx_bytes(0x803, {static_cast<uint32_t>(count), 28, 28}, pixels_of(count, 28 * 28));
}
// Image i is of class i % 10.
inline std::string idx_labels(int count) {
  std::string values;
  for (int i = 0; i < count; ++i)
    values += static_cast<char>(i % 10);
  return idx_bytes(0x801, {static_cast<uint32_t>(count)}, values);
}

// The first record's label is `first`, and each further one's is one more, up to 9.
inline std::string cifar_records(int count, int first) {
  std::string bytes;
  for (int i = 0; i < count; ++i)
    bytes += static_cast<char>((first + i) % 10) + pixels_of(1, 3072);
  return bytes;
}

inline void write_gzip(const std::string& path, const std::string& bytes) {
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
  gzclose(file);
}

}  // namespace brigade::test
