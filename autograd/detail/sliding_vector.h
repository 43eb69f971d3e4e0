// A contiguous vector that appends at the end and drops from the front.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace brigade::autograd::detail {

// Dropped elements stay in memory until they are at least as many as the rest, so that on average each element is moved
// at most once, however often elements are dropped.
template <class T>
class SlidingVector {
 public:
  void push_back(T element) { all_.push_back(std::move(element)); }
  // Drops the first `count` elements; `count` is at most size().
  void drop(size_t count) {
    dropped_ += count;
    if (dropped_ < all_.size() - dropped_) return;
    all_.erase(all_.begin(), all_.begin() + static_cast<std::ptrdiff_t>(dropped_));
    dropped_ = 0;
  }

  size_t size() const noexcept { return all_.size() - dropped_; }
  const T& operator[](size_t i) const noexcept { return all_[dropped_ + i]; }
  std::span<const T> span() const noexcept { return std::span(all_).subspan(dropped_); }

 private:
  std::vector<T> all_;
  size_t dropped_ = 0;
};

}  // namespace brigade::autograd::detail
