// Autocast as operations see it: a per-thread state that decides the dtype of their inputs.
//
// This layer holds no list of operations. A region (amp/autocast.h) sets the state, including the function that knows
// the lists (amp/autocast.h). A listed operation begins with:
//
//   Tensor softmax(const Tensor& x, int64_t dim, SourceLocation where) {
//     if (autograd::autocast_is_on()) [[unlikely]] {
//       if (const auto in = autograd::cast_inputs<"softmax">(where, x)) return softmax(in[0], dim, where);
//     }
//
// While such an object applies, autocast is off on this thread, so that inner operations do not cast again. The casts
// are recorded, so that gradients come back in the dtype of the inputs.
#pragma once

#include <brigade/core/tensor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

namespace brigade::autograd {

// The action of autocast on the inputs of an operation.
enum class CastRule : uint8_t {
  Unlisted,        // no cast; inner operations follow their own rules
  AsIs,            // no cast, and none in inner operations
  LowerPrecision,  // cast to the dtype of the region
  Float32,         // cast to float32
  Widest,          // cast to the widest dtype among them
  Refused,         // throws
};

class AutocastCache;

// The settings inside a region. Casts skip float64, non-floating tensors, and tensors of another device type than the
// operation's.
struct AutocastState {
  struct OnDevice {
    bool enabled = false;
    DType dtype = kBFloat16;
    SourceLocation where = {};  // the region that set this, where its line is known
  };
  std::array<OnDevice, kDeviceTypes> devices = {OnDevice{false, kBFloat16, {}}, OnDevice{false, kFloat16, {}}};
  bool cache_enabled = true;
  CastRule (*rule_of)(const char* operation, DeviceType device) = nullptr;
  std::shared_ptr<AutocastCache> cache;  // of the outermost region

  const OnDevice& on(DeviceType type) const noexcept { return devices[static_cast<size_t>(type)]; }
  OnDevice& on(DeviceType type) noexcept { return devices[static_cast<size_t>(type)]; }
  bool any_enabled() const noexcept { return devices[0].enabled || devices[1].enabled; }
};

namespace detail {
// The state that operations read; null where nothing is cast.
BRIGADE_INITIAL_EXEC inline constinit thread_local const AutocastState* autocast_state = nullptr;
// The innermost region, enabled or not; null outside any region.
BRIGADE_INITIAL_EXEC inline constinit thread_local const AutocastState* autocast_region = nullptr;
}  // namespace detail

inline bool autocast_is_on() noexcept { return detail::autocast_state != nullptr; }

// RAII: applies this state on this thread. Nests.
class AutocastScope {
 public:
  explicit AutocastScope(const AutocastState& state) noexcept
      : AutocastScope(state.any_enabled() ? &state : nullptr, &state) {}
  ~AutocastScope() {
    detail::autocast_state = state_;
    detail::autocast_region = region_;
  }
  AutocastScope(const AutocastScope&) = delete;
  AutocastScope& operator=(const AutocastScope&) = delete;

 protected:
  AutocastScope(const AutocastState* state, const AutocastState* region) noexcept
      : state_(std::exchange(detail::autocast_state, state)), region_(std::exchange(detail::autocast_region, region)) {}

 private:
  const AutocastState* state_;
  const AutocastState* region_;
};

// RAII: puts this thread outside any region. Backward runs this way.
class OutsideAutocast : AutocastScope {
 public:
  OutsideAutocast() noexcept : AutocastScope(nullptr, nullptr) {}
};

// RAII: turns casts off on this thread, for the operations inside an in-place operation.
class AutocastPause {
 public:
  AutocastPause() noexcept : state_(std::exchange(detail::autocast_state, nullptr)) {}
  ~AutocastPause() { detail::autocast_state = state_; }
  AutocastPause(const AutocastPause&) = delete;
  AutocastPause& operator=(const AutocastPause&) = delete;

 private:
  const AutocastState* state_;
};

// A copy of this thread's state, for code that will run again later; outside any region, everything is disabled. The
// cache is not copied: a region that starts from the copy has its own.
AutocastState autocast_now();

// Caches the casts of weights in an outermost region: a weight is cast once, however often it is used, and its
// gradients are summed before they are cast back.
//
// A weight is a float32 leaf that requires grad. It is cast again when it was written to since, when another dtype is
// requested, and when the cached cast was made under no_grad and gradients are now needed: without history, the weight
// would get no gradient.
class AutocastCache {
 public:
  AutocastCache();
  ~AutocastCache();
  AutocastCache(const AutocastCache&) = delete;
  AutocastCache& operator=(const AutocastCache&) = delete;
  // Makes the cast if none can be reused. The reference is valid until the next call.
  const Tensor& get(const Tensor& weight, DType dtype, SourceLocation where);
  size_t size() const noexcept;
  void clear() noexcept;

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

namespace detail {

// A cast made by autocast, named "autocast_to_float16" (for example) on the tape and in the graph.
Tensor autocast_to(const Tensor& x, DType dtype, SourceLocation where);

// A listed operation with its cached rules: one static object per name.
class AutocastOperation {
 public:
  constexpr explicit AutocastOperation(const char* name) noexcept : name_(name) {}
  const char* name() const noexcept { return name_; }
  CastRule rule(const AutocastState& state, DeviceType device) noexcept {
    const uint8_t known = rules_[static_cast<size_t>(device)].load(std::memory_order_relaxed);
    return known != kUnknown ? static_cast<CastRule>(known) : look_up(state, device);
  }

 private:
  static constexpr uint8_t kUnknown = 255;
  CastRule look_up(const AutocastState& state, DeviceType device) noexcept;
  const char* name_;
  std::atomic<uint8_t> rules_[kDeviceTypes] = {kUnknown, kUnknown};
};

template <size_t length>
struct OperationName {
  char text[length];
  constexpr OperationName(const char (&given)[length]) { std::copy_n(given, length, text); }  // NOLINT: a literal
};

template <OperationName name>
inline constinit AutocastOperation autocast_operation{name.text};

// The common part of CastInputs and CastList.
class CastInputsBase {
 public:
  ~CastInputsBase() {
    if (casts_) [[unlikely]]
      drop_casts();
    if (paused_) autocast_state = paused_;
  }
  CastInputsBase(const CastInputsBase&) = delete;
  CastInputsBase& operator=(const CastInputsBase&) = delete;
  // Whether the operation is listed for this device type; it then continues with these inputs.
  explicit operator bool() const noexcept { return paused_ != nullptr; }

 protected:
  CastInputsBase() noexcept = default;
  // Points each in[i] at its cast, if it needs one, and turns autocast off. Throws AutogradError for a refused
  // operation.
  void apply(AutocastOperation& operation, SourceLocation where, const Tensor** in, size_t count);

 private:
  void cast_some(const AutocastOperation& operation, CastRule rule, DeviceType device, SourceLocation where,
                 const Tensor** in, size_t count);
  void drop_casts() noexcept;
  const AutocastState* paused_ = nullptr;
  Tensor* casts_ = nullptr;  // owned array; null if nothing was cast
};

}  // namespace detail

// The inputs of an operation after autocast. Undefined inputs are allowed. The inputs must outlive this object.
template <size_t count>
class CastInputs : public detail::CastInputsBase {
 public:
  template <class... Inputs>
  CastInputs(detail::AutocastOperation& operation, SourceLocation where, const Inputs&... inputs)
      : inputs_{&inputs...} {
    apply(operation, where, inputs_, count);
  }
  const Tensor& operator[](size_t i) const noexcept { return *inputs_[i]; }

 private:
  const Tensor* inputs_[count];
};

// The same for a list of tensors.
class CastList : public detail::CastInputsBase {
 public:
  CastList(detail::AutocastOperation& operation, SourceLocation where, const std::vector<Tensor>& inputs);
  const std::vector<Tensor>& tensors() const noexcept { return tensors_; }

 private:
  std::vector<Tensor> tensors_;
};

// Casts the inputs of the operation listed under this name. Call only while autocast is on.
template <detail::OperationName name, class... Inputs>
CastInputs<sizeof...(Inputs)> cast_inputs(SourceLocation where, const Inputs&... inputs) {
  return CastInputs<sizeof...(Inputs)>(detail::autocast_operation<name>, where, inputs...);
}
template <detail::OperationName name>
CastList cast_list(SourceLocation where, const std::vector<Tensor>& inputs) {
  return CastList(detail::autocast_operation<name>, where, inputs);
}

}  // namespace brigade::autograd
