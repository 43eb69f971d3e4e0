// Checks whether a step can be captured into a CUDA graph: each replay must do what the captured step did.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::optim::detail {

// Whether work queued on the tensor's device is being captured into a graph.
bool is_captured(const Tensor& parameter);

// Throws ValueError, with PyTorch's message, for an optimizer whose step count stays on the host.
[[noreturn]] void throw_counts_on_host(const std::string& optimizer, bool could_be_capturable, SourceLocation where);
// Throws ValueError: each replay would create again the state that a parameter's first step creates.
[[noreturn]] void throw_first_in_capture(const std::string& optimizer, const Tensor& parameter, SourceLocation where);

}  // namespace brigade::optim::detail
