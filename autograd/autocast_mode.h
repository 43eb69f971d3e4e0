// Autocast as operations see it: a state per thread that says in which dtype their inputs come.
//
// The layers here know no list of operations. A region (amp/autocast.h) sets the state, and with it
// the function that knows the lists (amp/op_lists.h). An operation of the lists asks first:
//
//   Tensor softmax(const Tensor& x, int64_t dim, SourceLocation where) {
//     if (autograd::autocast_is_on()) [[unlikely]] {
//       if (const auto in = autograd::cast_inputs<"softmax">(where, x)) return softmax(in[0], dim, where);
//     }
//
// While such an object applies, autocast is off on this thread: what the operation is made of does
// not ask again. The casts are recorded, so that gradients come back in the dtype of the inputs.
#pragma once

#include <brigade/core/tensor.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <vector>

namespace brigade::autograd {

// What autocast does to the inputs of an operation.
enum class CastRule : uint8_t {
  Unlisted,        // nothing; the operations that it is made of ask for themselves
  AsIs,            // nothing, and they do not ask
  LowerPrecision,  // to the dtype of the region
  Float32,         // to float32
  Widest,          // to the widest dtype among them
  Refused,         // an error
};

class AutocastCache;

// What holds inside a region. Casts leave float64 and what is not floating alone, and tensors of
// another kind of device than the operation's.
struct AutocastState {
  struct OnDevice {
    bool enabled = false;
    DType dtype = kBFloat16;
    SourceLocation where = {};  // the region that says so, where its line is known
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
// What operations ask: null where nothing is cast.
BRIGADE_INITIAL_EXEC inline constinit thread_local const AutocastState* autocast_state = nullptr;
// The innermost region, switched off or not; null outside of any.
BRIGADE_INITIAL_EXEC inline constinit thread_local const AutocastState* autocast_region = nullptr;
}  // namespace detail

inline bool autocast_is_on() noexcept { return detail::autocast_state != nullptr; }

// While it lives, this state holds on this thread. Nests.
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

// While it lives, this thread is outside of any region: backward runs so.
class OutsideAutocast : AutocastScope {
 public:
  OutsideAutocast() noexcept : AutocastScope(nullptr, nullptr) {}
};

// While it lives, operations of this thread do not ask: what an operation in place is made of.
class AutocastPause {
 public:
  AutocastPause() noexcept : state_(std::exchange(detail::autocast_state, nullptr)) {}
  ~AutocastPause() { detail::autocast_state = state_; }
  AutocastPause(const AutocastPause&) = delete;
  AutocastPause& operator=(const AutocastPause&) = delete;

 private:
  const AutocastState* state_;
};

// What holds on this thread, for code that will run again later: with no region, all switched off.
// The cache is not part of it: a region that begins with the copy has its own.
AutocastState autocast_now();

// The casts of the weights in an outermost region: each is made once, however often the weight is
// used, and its gradients are added up before they are cast back.
//
// A weight is a leaf in float32 that requires grad. A cast is made anew when the weight was written
// to since, when another dtype is wanted, and when it was made under no_grad and is now to carry
// gradients: it has no history then, and the weight would go without a gradient.
class AutocastCache {
 public:
  AutocastCache();
  ~AutocastCache();
  AutocastCache(const AutocastCache&) = delete;
  AutocastCache& operator=(const AutocastCache&) = delete;
  // Made where there is none that can be used. Valid until the next call.
  const Tensor& get(const Tensor& weight, DType dtype, SourceLocation where);
  size_t size() const noexcept;
  void clear() noexcept;

 private:
  struct Entries;
  std::unique_ptr<Entries> entries_;
};

namespace detail {

// A cast that autocast makes, by the name "autocast_to_float16" on tape and in graph.
Tensor autocast_to(const Tensor& x, DType dtype, SourceLocation where);

// An operation of the lists, with its rules once they are known: one static object for each name.
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

// What CastInputs and CastList have in common.
class CastInputsBase {
 public:
  ~CastInputsBase() {
    if (casts_) [[unlikely]]
      drop_casts();
    if (paused_) autocast_state = paused_;
  }
  CastInputsBase(const CastInputsBase&) = delete;
  CastInputsBase& operator=(const CastInputsBase&) = delete;
  // Whether the operation is in the lists, for this kind of device: it goes on with these inputs.
  explicit operator bool() const noexcept { return paused_ != nullptr; }

 protected:
  CastInputsBase() noexcept = default;
  // Makes in[i] point at what stands for it, for each in turn, and switches autocast off. Throws
  // AutogradError for an operation that is refused.
  void apply(AutocastOperation& operation, SourceLocation where, const Tensor** in, size_t count);

 private:
  void cast_some(const AutocastOperation& operation, CastRule rule, DeviceType device, SourceLocation where,
                 const Tensor** in, size_t count);
  void drop_casts() noexcept;
  const AutocastState* paused_ = nullptr;
  Tensor* casts_ = nullptr;  // owned; an array, where something was cast
};

}  // namespace detail

// The inputs of an operation as autocast wants them. Undefined ones are allowed. They must outlive
// it.
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

// Of the operation with this name in the lists; while autocast is on.
template <detail::OperationName name, class... Inputs>
CastInputs<sizeof...(Inputs)> cast_inputs(SourceLocation where, const Inputs&... inputs) {
  return CastInputs<sizeof...(Inputs)>(detail::autocast_operation<name>, where, inputs...);
}
template <detail::OperationName name>
CastList cast_list(SourceLocation where, const std::vector<Tensor>& inputs) {
  return CastList(detail::autocast_operation<name>, where, inputs);
}

}  // namespace brigade::autograd
