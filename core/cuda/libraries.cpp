// The settings of cuBLASLt and cuDNN as atomics: TF32, deterministic algorithms, workspace sizes.
#include <brigade/core/cuda/libraries.h>

#include <atomic>

namespace brigade::cuda {

namespace {

constinit std::atomic<bool> tf32{false};
constinit std::atomic<bool> deterministic_convolutions{true};
constinit std::atomic<size_t> convolution_workspace{size_t{256} << 20};

}  // namespace

bool allow_tf32() noexcept { return tf32; }
void set_allow_tf32(bool allow) noexcept { tf32 = allow; }

bool deterministic_convolution() noexcept { return deterministic_convolutions; }
void set_deterministic_convolution(bool deterministic) noexcept { deterministic_convolutions = deterministic; }

size_t convolution_workspace_limit() noexcept { return convolution_workspace; }
void set_convolution_workspace_limit(size_t bytes) noexcept { convolution_workspace = bytes; }

}  // namespace brigade::cuda
