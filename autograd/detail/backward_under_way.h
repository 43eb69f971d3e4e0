// Which backwards run now, for whoever asks from another thread: a process that ends meanwhile loses them.
#pragma once

namespace brigade::autograd::detail {

// Lives as long as a backward runs on its thread.
class BackwardUnderWay {
 public:
  BackwardUnderWay() noexcept;
  ~BackwardUnderWay();
  BackwardUnderWay(const BackwardUnderWay&) = delete;
  BackwardUnderWay& operator=(const BackwardUnderWay&) = delete;
};

// Whether one runs on another thread than the calling one.
bool backward_elsewhere() noexcept;

}  // namespace brigade::autograd::detail
