// Runs a fuzz target once on each file of the folders given, and on each file cut short at several places: a test that
// needs no fuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int count, char** arguments) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < count; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(arguments[i])) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "no files to replay\n");
    return 1;
  }
  size_t runs = 0;
  for (const auto& path : files) {
    std::ifstream file(path, std::ios::binary);
    std::string bytes{std::istreambuf_iterator<char>(file), {}};
    constexpr size_t kCuts = 64;
    const size_t step = std::max<size_t>(1, bytes.size() / kCuts);
    for (size_t size = bytes.size();; size -= step) {
      // A copy of just this length, so that a sanitizer sees a read past its end.
      const std::vector<uint8_t> cut(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
      LLVMFuzzerTestOneInput(cut.data(), cut.size());
      ++runs;
      if (size < step) break;
    }
  }
  std::printf("%zu files, %zu inputs\n", files.size(), runs);
  return 0;
}
