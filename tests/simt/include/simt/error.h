// What the emulation throws.
#pragma once

#include <stdexcept>
#include <string>

namespace simt {

// A kernel broke a rule of the CUDA execution model, or a launch asked for what no device has. The message names the
// kernel, the thread, the block and the source line, as far as there are any.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace simt
