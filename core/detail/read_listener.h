// The listener for values that are read from a tensor as numbers; autograd sets it, for its tape.
#pragma once

#include <brigade/core/tensor.h>

#include <atomic>

namespace brigade::detail {

// `method`: "item", "to_vector".
using ReadListener = void (*)(const char* method, const Tensor& tensor, SourceLocation where);
// Null in a program without autograd.
inline constinit std::atomic<ReadListener> read_listener{nullptr};

}  // namespace brigade::detail
