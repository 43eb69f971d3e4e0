// The exception that the emulation throws.
#pragma once

#include <stdexcept>
#include <string>

namespace simt {

// A kernel violated a rule of the CUDA execution model, or a launch requested more than any device has. The message
// names the kernel, thread, block, and source line where available.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message) : std::runtime_error(message) {}
};

}  // namespace simt
