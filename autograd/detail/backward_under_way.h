// Tracks running backwards, so that another thread can see that ending the process would lose them.
#pragma once

namespace brigade::autograd::detail {

// RAII: marks a backward as running on its thread.
class BackwardUnderWay {
 public:
  BackwardUnderWay() noexcept;
  ~BackwardUnderWay();
  BackwardUnderWay(const BackwardUnderWay&) = delete;
  BackwardUnderWay& operator=(const BackwardUnderWay&) = delete;
};

// Whether a backward runs on a thread other than the calling one.
bool backward_elsewhere() noexcept;

}  // namespace brigade::autograd::detail
