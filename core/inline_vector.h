// A vector whose first N elements live in the object itself: the lists of a graph node are short
// and many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

namespace brigade {

// T must be default-constructible and movable.
template <class T, uint32_t N>
class InlineVector {
 public:
  InlineVector() noexcept = default;
  InlineVector(InlineVector&&) = delete;

  uint32_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return heap_ ? heap_.get() : inline_; }
  const T* data() const noexcept { return heap_ ? heap_.get() : inline_; }
  T* begin() noexcept { return data(); }
  T* end() noexcept { return data() + size_; }
  const T* begin() const noexcept { return data(); }
  const T* end() const noexcept { return data() + size_; }
  T& operator[](uint32_t i) noexcept { return data()[i]; }
  const T& operator[](uint32_t i) const noexcept { return data()[i]; }
  operator std::span<const T>() const noexcept { return {data(), size_}; }

  void push_back(T value) {
    if (size_ == capacity_) grow();
    data()[size_++] = std::move(value);
  }
  // Appends T() and returns it, to be filled in.
  T& emplace_back() {
    if (size_ == capacity_) grow();
    return data()[size_++];
  }
  void resize(uint32_t size) {
    while (capacity_ < size)
      grow();
    for (uint32_t i = size; i < size_; ++i)
      data()[i] = T();
    size_ = size;
  }
  void erase(uint32_t position) noexcept {
    std::move(data() + position + 1, end(), data() + position);
    data()[--size_] = T();
  }
  void clear() noexcept { resize(0); }

 private:
  [[gnu::noinline, gnu::cold]] void grow() {
    const uint32_t capacity = capacity_ * 2;
    auto larger = std::make_unique<T[]>(capacity);
    std::move(begin(), end(), larger.get());
    heap_ = std::move(larger);
    capacity_ = capacity;
  }

  T inline_[N] = {};
  std::unique_ptr<T[]> heap_;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
};

}  // namespace brigade
