// Settings of cuBLASLt and cuDNN for the whole process; they apply to later calls. Safe from any thread.
#pragma once

#include <cstddef>

namespace brigade::cuda {

// Whether matrix products and convolutions of float32 may round their operands to TF32 (10 bits of
// fraction) for the tensor cores. Off until it is set. (PyTorch:
// torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32.)
bool allow_tf32() noexcept;
void set_allow_tf32(bool allow) noexcept;

// Whether convolutions use only algorithms that give the same bits each time. On until it is
// cleared. (PyTorch: torch.backends.cudnn.deterministic.)
bool deterministic_convolution() noexcept;
void set_deterministic_convolution(bool deterministic) noexcept;

// The most memory that one convolution may take from the allocator in addition to its tensors; 256
// MiB until it is set. With less, slower algorithms are used.
size_t convolution_workspace_limit() noexcept;
void set_convolution_workspace_limit(size_t bytes) noexcept;

}  // namespace brigade::cuda
