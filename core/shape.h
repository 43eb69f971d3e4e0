// A short list of int64: sizes and strides of a tensor, without a heap allocation.
#pragma once

#include <brigade/core/error.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

namespace brigade {

// The most dimensions that a tensor may have.
inline constexpr int kMaxDims = 8;

class Shape {
 public:
  constexpr Shape() noexcept = default;
  Shape(std::initializer_list<int64_t> values) : Shape(std::span(values.begin(), values.size())) {}
  Shape(const std::vector<int64_t>& values) : Shape(std::span<const int64_t>(values)) {}
  explicit Shape(std::span<const int64_t> values) {
    for (int64_t value : values)
      push_back(value);
  }
  // `count` times `value`.
  static Shape filled(int count, int64_t value) {
    Shape shape;
    for (int i = 0; i < count; ++i)
      shape.push_back(value);
    return shape;
  }

  int size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  int64_t operator[](int i) const noexcept { return values_[i]; }
  int64_t& operator[](int i) noexcept { return values_[i]; }
  int64_t front() const noexcept { return values_[0]; }
  int64_t back() const noexcept { return values_[size_ - 1]; }
  const int64_t* begin() const noexcept { return values_; }
  const int64_t* end() const noexcept { return values_ + size_; }
  int64_t* begin() noexcept { return values_; }
  int64_t* end() noexcept { return values_ + size_; }

  void push_back(int64_t value) {
    if (size_ == kMaxDims) [[unlikely]]
      throw_too_many();
    values_[size_++] = value;
  }
  void pop_back() noexcept { --size_; }
  void insert(int position, int64_t value) {
    push_back(value);
    std::rotate(values_ + position, values_ + size_ - 1, values_ + size_);
  }
  void erase(int position) noexcept {
    std::copy(values_ + position + 1, values_ + size_, values_ + position);
    --size_;
  }

  // Product of all entries (1 for no dimensions).
  int64_t numel() const noexcept {
    int64_t product = 1;
    for (int64_t value : *this)
      product *= value;
    return product;
  }
  bool operator==(const Shape& other) const noexcept {
    if (size_ != other.size_) return false;
    for (int i = 0; i < size_; ++i) {  // shorter than a call of memcmp
      if (values_[i] != other.values_[i]) return false;
    }
    return true;
  }

 private:
  [[noreturn]] static void throw_too_many();

  int64_t values_[kMaxDims] = {};
  int size_ = 0;
};

// "[2, 3, 4]"
std::string to_string(const Shape& shape);

// Row-major strides, in elements.
Shape contiguous_strides(const Shape& sizes) noexcept;

// The shape both broadcast to, from the right, as NumPy does; throws ShapeError that names both shapes and the
// dimension.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::source_location where = {});

// `dim` counted from the end when negative; throws IndexError with the allowed range. A tensor without dimensions
// accepts 0 and -1.
int wrap_dim(int64_t dim, int dims, std::source_location where = {});

}  // namespace brigade
