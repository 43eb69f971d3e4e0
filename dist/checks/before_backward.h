// The value observed at the last forward before a given backward, even if a later forward has observed another one.
#pragma once

#include <cstdint>
#include <utility>

namespace brigade::dist {

template <class T>
class BeforeBackward {
 public:
  // Called at a forward that a backward may follow; `backwards` is the number of backwards so far.
  void see(T seen, uint64_t backwards) {
    if (backwards != backwards_) before_ = std::move(latest_);
    backwards_ = backwards;
    latest_ = std::move(seen);
  }
  // The value observed before the latest of `backwards` backwards; T() if there is none.
  const T& latest(uint64_t backwards) const noexcept { return backwards > backwards_ ? latest_ : before_; }

 private:
  // `latest_`: at the latest forward, after `backwards_` backwards. `before_`: at the last forward before the latest
  // of those backwards.
  T latest_ = {}, before_ = {};
  uint64_t backwards_ = 0;
};

}  // namespace brigade::dist
