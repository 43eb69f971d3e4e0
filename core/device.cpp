// A device as text: "cpu", or "cuda:0".
#include <brigade/core/device.h>

#include <brigade/core/error.h>

#include <charconv>

namespace brigade {

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

}  // namespace brigade
