// Splits the file into records.
#include <brigade/data/detail/image_files.h>

#include <brigade/core/error.h>

namespace brigade::data::detail {

void read_cifar10(const std::string& path, std::string& pixels, std::vector<int64_t>& labels) {
  constexpr size_t kRecord = 1 + kCifarPixels;
  constexpr size_t kMost = size_t{1} << 30;
  constexpr const char* kExpected = "a file of the binary version of CIFAR-10: records of 3073 bytes, 10000 of them";
  const std::string bytes = read_file(path, kMost, kExpected);
  if (bytes.empty() || bytes.size() % kRecord != 0) {
    throw IoError("{} holds {} bytes, which is no whole number of records; expected {}. Get the file again", path,
                  bytes.size(), kExpected);
  }
  for (size_t at = 0; at < bytes.size(); at += kRecord) {
    const auto label = static_cast<unsigned char>(bytes[at]);
    if (label > 9) {
      throw IoError("{}, record {}: the label is {}, expected 0..9; is it {}?", path, at / kRecord,
                    static_cast<int>(label), kExpected);
    }
    labels.push_back(label);
    pixels.append(bytes, at + 1, kCifarPixels);
  }
}

}  // namespace brigade::data::detail
