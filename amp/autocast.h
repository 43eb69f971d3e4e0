// Automatic mixed precision: inside a region, operations choose the dtype that suits them.
//
//   {
//     amp::autocast guard(kCUDA, kFloat16);
//     loss = criterion(net(x), target);      // matrix products in float16, the loss in float32
//   }
//   scaler.scale(loss).backward();           // outside: each gradient in the dtype of its operation
//
// What is cast, and to what, is in amp/op_lists.h (PyTorch's lists; `brigade doctor --amp` shows
// them). Operations of no list take their inputs as they come. Parameters stay in float32: their
// casts are recorded, so that gradients come back in float32, and each is made once per region.
//
// The state belongs to the thread. Backward runs outside of any region, wherever it is called, and
// activation checkpoints run a segment again as it ran first. What is written in place is not cast.
//
// Source: Micikevicius and others: "Mixed precision training", 2018 (arXiv 1710.03740).
#pragma once

#include <brigade/autograd/autocast_mode.h>
#include <brigade/core/tensor.h>

#include <optional>

namespace brigade::amp {

// While it lives, autocast is on, or off, for tensors of one kind of device (PyTorch:
// torch.amp.autocast). Regions nest, also with other dtypes and for other devices; one that is not
// enabled switches autocast off inside of another. Guards of a thread end in the reverse order in
// which they began.
//
// `dtype`: kFloat16 or kBFloat16; unless given that of the region around, at first float16 on CUDA
// and bfloat16 on the CPU. Another one is a warning, and the region is not enabled.
// `cache_enabled`: casts of weights are kept until the outermost region ends; unless given, as in
// the region around. Without it each use casts again, for weights that change where the version
// counter does not see it.
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

// Of this thread, here (PyTorch: torch.is_autocast_enabled, get_autocast_dtype,
// is_autocast_cache_enabled).
bool is_autocast_enabled(DeviceType device) noexcept;
DType autocast_dtype(DeviceType device) noexcept;
bool is_autocast_cache_enabled() noexcept;
// The line of the region that decides for this kind of device; no line outside of any, and where std::optional made it.
SourceLocation autocast_where(DeviceType device) noexcept;
// Forgets the casts of weights of this thread's region (PyTorch: torch.clear_autocast_cache); for
// weights whose memory was written by other means than Brigade's operations.
void clear_autocast_cache() noexcept;
// How many casts of weights this thread's region holds.
size_t autocast_cache_size() noexcept;

}  // namespace brigade::amp
