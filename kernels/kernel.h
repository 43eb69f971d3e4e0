// Dispatch by device: one table row per operation, one column per device type.
//
// A family's header declares its kernels (`extern Kernel<Tensor(const Tensor&)> relu;`). The file
// in cpu/ defines the row together with its CPU column (`Kernel<...> relu("relu", &relu_cpu);`), so
// that using an operation links its CPU code. The file in cuda/ adds its column from a static
// object (`const AddKernel add_relu(relu, kCUDA, &relu_cuda);`): no list is edited anywhere.
#pragma once

#include <brigade/core/tensor.h>

#include <array>
#include <string_view>

namespace brigade {

namespace detail {
[[noreturn]] void throw_no_kernel(const char* name, DeviceType device);

// The device of a call: that of its first tensor argument (or of its options).
inline DeviceType device_of(const Tensor& tensor) { return tensor.device().type; }
inline DeviceType device_of(const TensorOptions& options) { return options.device.type; }
inline DeviceType device_of(std::span<const Tensor> tensors) {
  return tensors.empty() ? DeviceType::CPU : tensors.front().device().type;
}
}  // namespace detail

template <class Signature>
class Kernel;

template <class Result, class First, class... Rest>
class Kernel<Result(First, Rest...)> {
 public:
  using Function = Result (*)(First, Rest...);

  constexpr Kernel(const char* name, Function cpu) noexcept : name_(name), columns_{cpu} {}
  Kernel(const Kernel&) = delete;
  Kernel& operator=(const Kernel&) = delete;

  // The first argument decides the device. Throws DeviceError when that device has no kernel.
  Result operator()(First first, Rest... rest) const {
    const DeviceType device = detail::device_of(first);
    const Function function = columns_[static_cast<int>(device)];
    if (!function) [[unlikely]]
      detail::throw_no_kernel(name_, device);
    return function(static_cast<First>(first), static_cast<Rest>(rest)...);
  }
  const char* name() const noexcept { return name_; }
  bool has(DeviceType device) const noexcept { return columns_[static_cast<int>(device)] != nullptr; }
  void add(DeviceType device, Function function) noexcept { columns_[static_cast<int>(device)] = function; }

 private:
  const char* name_;
  std::array<Function, kDeviceTypes> columns_{};
};

// A static object that fills a column before main.
struct AddKernel {
  template <class Signature, class Function>
  AddKernel(Kernel<Signature>& kernel, DeviceType device, Function function) noexcept {
    kernel.add(device, function);
  }
};

}  // namespace brigade

namespace brigade::kernels {

// --- The instruction set that the CPU kernels were chosen for at program start.

// "x86-64", "x86-64-v2" (SSE4.2), "x86-64-v3" (AVX2), "x86-64-v4" (AVX-512), "neon" or "portable": the best one that
// the processor has, or a lower one set by the environment variable BRIGADE_CPU (for tests and comparisons).
std::string_view instruction_set();

namespace cpu {
// Applies BRIGADE_CPU. Exits with status 2 and a line on stderr when it names no instruction set of this processor.
// Called before main.
bool limit_instruction_set();
}  // namespace cpu

}  // namespace brigade::kernels
