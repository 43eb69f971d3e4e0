// Elements that are appended at the end and dropped from the front, in one piece of memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace brigade::autograd::detail {

// What is dropped stays in front until there is as much of it as of the rest, so that an element is moved once at most, on
// average, however often some are dropped.
template <class T>
class SlidingVector {
 public:
  void push_back(T element) { all_.push_back(std::move(element)); }
  // The first `count` of size().
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
