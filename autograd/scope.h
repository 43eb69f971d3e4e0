// Tracks the running module, with a stack per thread, so that a record on the tape knows its module path.
#pragma once

#include <brigade/core/tensor.h>

#include <cstdint>
#include <string>

namespace brigade::autograd {

// A module call. `path` ("encoder.0.fc1", "" for the root) and `type` ("Linear") must outlive every
// tape: intern() them.
class ScopeGuard {
 public:
  // `module`, `unregistered`: as in ModuleCall.
  ScopeGuard(const std::string* path, const char* type, SourceLocation where, const void* module = nullptr,
             uint64_t unregistered = 0) noexcept;
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  uint32_t previous_;
};

// A copy of the text that lives as long as the process; equal texts give the same pointer.
// Thread-safe.
const std::string* intern(const std::string& text);

}  // namespace brigade::autograd
