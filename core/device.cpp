// A device as text: "cpu", or "cuda:0".
#include <brigade/core/device.h>

namespace brigade {

const char* name(DeviceType type) noexcept { return type == DeviceType::CPU ? "cpu" : "cuda"; }

std::string to_string(Device device) {
  std::string text = name(device.type);
  if (device.type == DeviceType::CUDA) text += ":" + std::to_string(device.index);
  return text;
}

}  // namespace brigade
