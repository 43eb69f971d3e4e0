// Automatic mixed precision: inside a region, operations choose the dtype that suits them.
//
//   {
//     amp::autocast guard(kCUDA, kFloat16);
//     loss = criterion(net(x), target);      // matrix products in float16, the loss in float32
//   }
//   scaler.scale(loss).backward();           // outside: each gradient in the dtype of its operation
//
// amp/autocast.h defines which operations cast, and to what (PyTorch's lists; `brigade doctor
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
#include <brigade/core/device.h>
#include <brigade/core/tensor.h>

#include <optional>
#include <span>
#include <string>

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

// --- The lists of autocast: what happens to the inputs of each operation, by device type.
//
// They are PyTorch's (a test compares them with tests/amp/data/torch_op_lists.json). An unlisted operation takes its
// inputs as they are; an operation that is composed of others, such as normalize, follows its parts.

using autograd::CastRule;

// An operation of the lists.
struct ListedOperation {
  const char* name;   // in Brigade
  const char* torch;  // in PyTorch, where the rule comes from; several are written "mm, addmm"
  CastRule cpu, cuda;
  const char* why;  // "" unless the rule is not simply PyTorch's of that name

  CastRule rule(DeviceType device) const noexcept { return device == kCPU ? cpu : cuda; }
};

// All listed operations, by rule, then by name.
std::span<const ListedOperation> op_lists() noexcept;
// CastRule::Unlisted for a name that is not listed.
CastRule cast_rule(const char* operation, DeviceType device) noexcept;
// "lower precision", "float32", "widest", "refused", "as it is", "not listed".
const char* name(CastRule rule) noexcept;

// --- Precision names, spelled as in Lightning: the dtypes that a training job computes in.

struct Precision {
  std::string name;               // "16-mixed"
  DType parameters;               // also of the data
  std::optional<DType> autocast;  // of forward and loss; nothing: no region
  bool scales = false;            // a gradient scaler scales the loss
};

// Also takes Lightning's short names: "64", "32", "16" (16-mixed) and "bf16" (bf16-mixed). Throws
// ValueError that lists the known names.
const Precision& find_precision(const std::string& name);
// "32-true, 16-mixed, ..."
std::string precision_names();

}  // namespace brigade::amp
