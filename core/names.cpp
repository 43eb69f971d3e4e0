// Devices and dtypes by name, and the dtype that two dtypes are promoted to.
#include <brigade/core/device.h>

#include <brigade/core/dtype.h>
#include <brigade/core/error.h>

#include <charconv>
#include <iterator>

namespace brigade {

// --- A device as text: "cpu", or "cuda:0".

Device::Device(const std::string& text) {
  if (text == "cpu") return;
  type = DeviceType::CUDA;
  if (text == "cuda") return;
  constexpr size_t kPrefix = 5;  // of "cuda:"
  const char* const end = text.data() + text.size();
  if (text.starts_with("cuda:") && text.size() > kPrefix) {
    const auto [rest, error] = std::from_chars(text.data() + kPrefix, end, index);
    if (error == std::errc() && rest == end && index >= 0) return;
  }
  throw ValueError("device \"{}\": expected \"cpu\", \"cuda\" or \"cuda:1\"", text);
}

const char* name(DeviceType type) noexcept { return type == DeviceType::CPU ? "cpu" : "cuda"; }

std::string to_string(Device device) {
  std::string text = name(device.type);
  if (device.type == DeviceType::CUDA) text += ":" + std::to_string(device.index);
  return text;
}

// --- Dtypes by name, and the dtype that two dtypes are promoted to.

namespace {
constexpr const char* kNames[] = {"float64", "float32", "float16", "bfloat16", "int64", "int32", "uint8", "bool"};
}

const char* name(DType dtype) noexcept { return kNames[static_cast<int>(dtype)]; }

DType dtype_from_name(const std::string& name) {
  for (size_t i = 0; i < std::size(kNames); ++i) {
    if (name == kNames[i]) return static_cast<DType>(i);
  }
  std::string known;
  for (const char* each : kNames)
    known += std::string(known.empty() ? "" : ", ") + each;
  throw DTypeError("unknown dtype '{}'; known are {}", name, known);
}

DType promote_types(DType a, DType b) noexcept {
  if (a == b) return a;
  if (is_half(a) && is_half(b)) return DType::Float32;
  // The enumeration runs from the widest to the narrowest, floats first: the lower value wins.
  return a < b ? a : b;
}

}  // namespace brigade
