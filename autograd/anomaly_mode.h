// Anomaly mode: a backward that produces a NaN fails at the operation that produced it and names the line of its
// forward call (PyTorch: torch.autograd.detect_anomaly). Costs a pass over every gradient.
#pragma once

namespace brigade::autograd {

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
