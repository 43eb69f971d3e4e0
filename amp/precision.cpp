// The known precisions.
#include <brigade/amp/autocast.h>

#include <algorithm>
#include <array>

namespace brigade::amp {
namespace {

// float16 with float32 parameters needs a scaler: without one, small gradients become zero. bfloat16 has the range of
// float32.
const std::array<Precision, 6>& precisions() {
  static const std::array<Precision, 6> known{{{"32-true", kFloat32, std::nullopt},
                                               {"16-mixed", kFloat32, kFloat16, true},
                                               {"bf16-mixed", kFloat32, kBFloat16},
                                               {"16-true", kFloat16, std::nullopt},
                                               {"bf16-true", kBFloat16, std::nullopt},
                                               {"64-true", kFloat64, std::nullopt}}};
  return known;
}

std::string long_name(const std::string& name) {
  if (name == "64" || name == "32") return name + "-true";
  if (name == "16" || name == "bf16") return name + "-mixed";
  return name;
}

}  // namespace

const Precision& find_precision(const std::string& name) {
  const auto found = std::find_if(precisions().begin(), precisions().end(),
                                  [&](const Precision& each) { return each.name == long_name(name); });
  if (found == precisions().end()) throw ValueError("unknown precision '{}'; known are {}", name, precision_names());
  return *found;
}

std::string precision_names() {
  std::string names;
  for (const Precision& each : precisions())
    names += (names.empty() ? "" : ", ") + each.name;
  return names;
}

}  // namespace brigade::amp
