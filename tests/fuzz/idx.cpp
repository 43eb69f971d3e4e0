// Reads the bytes as a file of images and as one of labels, as MNIST has them.
#include "input.h"

#include <brigade/data/detail/image_files.h>

using namespace brigade;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  for (const int dimensions : {1, 3}) {
    fuzz::run(data, size, [&](const std::string& path) {
      const data::detail::IdxFile file = data::detail::read_idx(path, dimensions, "a file of the fuzzer");
      fuzz::require(file.sizes.size() == static_cast<size_t>(dimensions), "as many sizes as dimensions");
      size_t count = 1;
      for (const int64_t each : file.sizes)
        count *= static_cast<size_t>(each);
      fuzz::require(file.values.size() == count, "as many values as the sizes say");
    });
  }
  return 0;
}
