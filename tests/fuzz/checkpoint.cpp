// Reads the bytes as a checkpoint: all parts, their tensors and their numbers, in every form that a part may have.
#include "input.h"

#include <brigade/optim/detail/checkpoint_file.h>

using namespace brigade;

namespace {

void attempt(const std::string& path, const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    fuzz::require(std::strstr(error.what(), path.c_str()), "an error names the file");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return fuzz::run(data, size, [](const std::string& path) {
    const optim::detail::CheckpointFile file(path);
    for (const auto& [name, part] : file.parts()) {
      for (const auto& [own, tensor] : part.tensors)
        tensor.to_vector<double>();
      attempt(path, [&] { fuzz::require(file.numbers(name).size() == part.texts.size(), "every text is a number"); });
      attempt(path, [&] { file.number<uint64_t>(name, "seed"); });
      attempt(path, [&] {
        const auto value = file.number<int64_t>(name, "value");
        fuzz::require(std::stoll(optim::detail::number_text(value)) == value, "a whole number comes back");
      });
      attempt(path, [&] {
        const auto value = file.number<double>(name, "value");
        const double again = std::strtod(optim::detail::number_text(value).c_str(), nullptr);
        fuzz::require(again == value || value != value, "a number comes back");
      });
    }
  });
}
