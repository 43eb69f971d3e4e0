// Reads the bytes as a file of CIFAR-10.
#include "input.h"

#include <brigade/data/detail/image_files.h>

using namespace brigade;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::run(data, size, [](const std::string& path) {
    std::string pixels;
    std::vector<int64_t> labels;
    data::detail::read_cifar10(path, pixels, labels);
    fuzz::require(!labels.empty(), "a file that is read holds something");
    fuzz::require(pixels.size() == labels.size() * data::detail::kCifarPixels, "3072 bytes per image");
    for (const int64_t label : labels)
      fuzz::require(label >= 0 && label <= 9, "one of ten classes");
  });
}
