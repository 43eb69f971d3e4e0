// Which steps can be captured into a CUDA graph: those whose replays do again what they did.
#pragma once

#include <brigade/core/tensor.h>

#include <string>

namespace brigade::optim::detail {

// Whether what is queued on the tensor's device now goes into a graph.
bool is_captured(const Tensor& parameter);

// Throws ValueError, with PyTorch's words, for one whose count of steps stays on the host.
[[noreturn]] void throw_counts_on_host(const std::string& optimizer, bool could_be_capturable, SourceLocation where);
// Throws ValueError: what a step makes when it is the first of its kind would be made again by each replay.
[[noreturn]] void throw_first_in_capture(const std::string& optimizer, const Tensor& parameter, SourceLocation where);

}  // namespace brigade::optim::detail
