// Modes of a thread: whether operations are recorded, and whether a NaN in backward is an error.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade {

// --- Whether operations are recorded: one flag per thread. Guards nest and remember where they were opened.

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

namespace brigade::autograd {

// --- Anomaly mode: a backward that produces a NaN fails at the operation that produced it and names the line of its
// forward call (PyTorch: torch.autograd.detect_anomaly). Costs a pass over every gradient.

struct AnomalyMode {
  // For the calling thread.
  static bool is_enabled() noexcept;
  static void set_enabled(bool enabled) noexcept;
};

// RAII: while it lives, backward on this thread throws AutogradError "Function 'LogBackward' returned nan values in its
// 0th output. ..." for the first operation whose incoming gradients have no NaN and whose input gradients have one.
class DetectAnomalyGuard {
 public:
  DetectAnomalyGuard() noexcept;
  ~DetectAnomalyGuard();
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;
  DetectAnomalyGuard& operator=(const DetectAnomalyGuard&) = delete;

 private:
  bool previous_;
};

}  // namespace brigade::autograd
