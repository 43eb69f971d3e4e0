// Where a tensor lives.
#pragma once

#include <compare>
#include <cstdint>
#include <string>

namespace brigade {

enum class DeviceType : uint8_t { CPU, CUDA };
inline constexpr int kDeviceTypes = 2;
inline constexpr DeviceType kCPU = DeviceType::CPU;
inline constexpr DeviceType kCUDA = DeviceType::CUDA;

struct Device {
  DeviceType type = DeviceType::CPU;
  int16_t index = 0;

  constexpr Device() = default;
  constexpr Device(DeviceType device_type, int device_index = 0)
      : type(device_type), index(static_cast<int16_t>(device_index)) {}
  // "cpu", "cuda" (the first), "cuda:1". Throws ValueError for another text.
  Device(const std::string& text);
  Device(const char* text) : Device(std::string(text)) {}
  auto operator<=>(const Device&) const = default;
};

const char* name(DeviceType type) noexcept;
// "cpu", "cuda:0"
std::string to_string(Device device);

}  // namespace brigade
