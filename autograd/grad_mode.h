// Whether operations are recorded: one flag per thread. Guards nest and remember where they were opened.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

namespace autograd {

namespace detail {
BRIGADE_INITIAL_EXEC inline constinit thread_local bool recording = true;
}

struct GradMode {
  static bool is_enabled() noexcept { return detail::recording; }
  // The line of the innermost guard that switched recording off (line() == 0 when it is on).
  static SourceLocation disabled_at() noexcept;
};

}  // namespace autograd

// RAII: nothing is recorded on this thread (PyTorch: torch.no_grad).
class NoGradGuard {
 public:
  explicit NoGradGuard(SourceLocation where = SourceLocation::current()) noexcept;
  ~NoGradGuard();
  NoGradGuard(const NoGradGuard&) = delete;
  NoGradGuard& operator=(const NoGradGuard&) = delete;

 private:
  bool previous_;
  SourceLocation previous_where_;
};

// Switches recording on inside a NoGradGuard (PyTorch: torch.enable_grad).
class EnableGradGuard {
 public:
  EnableGradGuard() noexcept;
  ~EnableGradGuard();
  EnableGradGuard(const EnableGradGuard&) = delete;
  EnableGradGuard& operator=(const EnableGradGuard&) = delete;

 private:
  bool previous_;
  SourceLocation previous_where_;
};

// Switches recording on or off (PyTorch: torch::AutoGradMode).
class AutoGradMode {
 public:
  explicit AutoGradMode(bool enabled, SourceLocation where = SourceLocation::current()) noexcept;
  ~AutoGradMode();
  AutoGradMode(const AutoGradMode&) = delete;
  AutoGradMode& operator=(const AutoGradMode&) = delete;

 private:
  bool previous_;
  SourceLocation previous_where_;
};

}  // namespace brigade
