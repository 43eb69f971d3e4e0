// The value observed at the last forward before a given backward; a later forward may have observed another one.
#pragma once

#include <cstdint>
#include <utility>

namespace brigade::dist {

template <class T>
class BeforeBackward {
 public:
  // At a forward that a backward may follow, after `backwards` of them.
  void see(T seen, uint64_t backwards) {
    if (backwards != backwards_) before_ = std::move(latest_);
    backwards_ = backwards;
    latest_ = std::move(seen);
  }
  // Before the latest of as many backwards; T() where nothing was.
  const T& latest(uint64_t backwards) const noexcept { return backwards > backwards_ ? latest_ : before_; }

 private:
  // In the latest forward, after so many backwards; and in the last one before the latest of these.
  T latest_ = {}, before_ = {};
  uint64_t backwards_ = 0;
};

}  // namespace brigade::dist
