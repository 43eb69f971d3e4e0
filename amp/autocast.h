// Automatic mixed precision: inside a region, operations choose the dtype that suits them.
//
//   {
//     amp::autocast guard(kCUDA, kFloat16);
//     loss = criterion(net(x), target);      // matrix products in float16, the loss in float32
//   }
//   scaler.scale(loss).backward();           // outside: each gradient in the dtype of its operation
//
// amp/op_lists.h defines which operations cast, and to what (PyTorch's lists; `brigade doctor
// --amp` shows them). Unlisted operations take their inputs as they are. Parameters stay in
// float32: their casts are recorded, so that gradients come back in float32, and each cast is made
// once per region.
//
// The state is per thread. Backward runs outside of any region, wherever it is called, and
// activation checkpoints rerun a segment in the state of its first run. Tensors that are written in
// place are not cast.
//
// Source: Micikevicius and others: "Mixed precision training", 2018 (arXiv 1710.03740).
#pragma once

#include <brigade/autograd/autocast_mode.h>
#include <brigade/core/tensor.h>

#include <optional>

namespace brigade::amp {

// RAII: switches autocast on or off for tensors of one device type (PyTorch: torch.amp.autocast).
// Regions nest, also with other dtypes and for other devices; a region that is not enabled switches
// autocast off inside another one. The guards of a thread must end in the reverse order of their
// beginning.
//
// `dtype`: kFloat16 or kBFloat16; by default that of the enclosing region, initially float16 on
// CUDA and bfloat16 on the CPU. Any other dtype causes a warning, and the region is not enabled.
// `cache_enabled`: casts of weights are kept until the outermost region ends; by default as in the
// enclosing region. If false, each use casts again: for weights that change without the version
// counter noticing.
class [[nodiscard]] autocast {
 public:
  explicit autocast(DeviceType device, std::optional<DType> dtype = {}, bool enabled = true,
                    std::optional<bool> cache_enabled = {}, SourceLocation where = SourceLocation::current());
  ~autocast() = default;
  autocast(const autocast&) = delete;
  autocast& operator=(const autocast&) = delete;

 private:
  autograd::AutocastState state_;
  autograd::AutocastScope scope_;
};

// The state of this thread at the call (PyTorch: torch.is_autocast_enabled, get_autocast_dtype,
// is_autocast_cache_enabled).
bool is_autocast_enabled(DeviceType device) noexcept;
DType autocast_dtype(DeviceType device) noexcept;
bool is_autocast_cache_enabled() noexcept;
// The line of the region that applies to this device type; no line outside of any region, or if std::optional made it.
SourceLocation autocast_where(DeviceType device) noexcept;
// Clears the casts of weights of this thread's region (PyTorch: torch.clear_autocast_cache), for
// weights whose memory was written by other means than Brigade's operations.
void clear_autocast_cache() noexcept;
// The number of casts of weights that this thread's region holds.
size_t autocast_cache_size() noexcept;

}  // namespace brigade::amp
