// A short list of int64: sizes and strides of a tensor, up to six of them without heap memory; and arithmetic with
// sizes that throws on overflow instead of wrapping around.
#pragma once

#include <brigade/core/error.h>

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace brigade {

// The most dimensions that a tensor may have, as in PyTorch.
inline constexpr int kMaxDims = 64;

namespace detail {
[[noreturn, gnu::cold]] void throw_size_overflow(int64_t a, char op, int64_t b);
}  // namespace detail

// A size, stride or offset (or a bound of one) that is computed from numbers that a caller chose:
// every step is checked and throws ShapeError, with both numbers, when it overflows 64 bits. Write
// Size(a) * b + c, and value() in the end; the first operand of each operator has to be a Size.
class Size {
 public:
  constexpr explicit Size(int64_t value) noexcept : value_(value) {}
  constexpr int64_t value() const noexcept { return value_; }

  friend constexpr Size operator+(Size a, int64_t b) { return a.plus(b); }
  friend constexpr Size operator-(Size a, int64_t b) { return a.minus(b); }
  friend constexpr Size operator*(Size a, int64_t b) { return a.times(b); }
  friend constexpr Size operator+(Size a, Size b) { return a.plus(b.value_); }
  friend constexpr Size operator-(Size a, Size b) { return a.minus(b.value_); }
  friend constexpr Size operator*(Size a, Size b) { return a.times(b.value_); }
  constexpr Size& operator+=(int64_t b) { return *this = plus(b); }
  constexpr Size& operator*=(int64_t b) { return *this = times(b); }

 private:
  constexpr Size plus(int64_t b) const {
    int64_t result = 0;
    if (__builtin_add_overflow(value_, b, &result)) [[unlikely]]
      detail::throw_size_overflow(value_, '+', b);
    return Size(result);
  }
  constexpr Size minus(int64_t b) const {
    int64_t result = 0;
    if (__builtin_sub_overflow(value_, b, &result)) [[unlikely]]
      detail::throw_size_overflow(value_, '-', b);
    return Size(result);
  }
  constexpr Size times(int64_t b) const {
    int64_t result = 0;
    if (__builtin_mul_overflow(value_, b, &result)) [[unlikely]]
      detail::throw_size_overflow(value_, '*', b);
    return Size(result);
  }

  int64_t value_;
};

// Bytes of `count` elements of `itemsize` bytes. Throws ShapeError for a negative count and on overflow.
constexpr size_t checked_bytes(int64_t count, size_t itemsize) {
  size_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(static_cast<size_t>(count), itemsize, &bytes)) [[unlikely]]
    detail::throw_size_overflow(count, '*', static_cast<int64_t>(itemsize));
  return bytes;
}

class Shape {
 public:
  constexpr Shape() noexcept : near_{} {}
  Shape(std::initializer_list<int64_t> values) : Shape(std::span(values.begin(), values.size())) {}
  Shape(const std::vector<int64_t>& values) : Shape(std::span<const int64_t>(values)) {}
  explicit Shape(std::span<const int64_t> values) : Shape() {
    for (int64_t value : values)
      push_back(value);
  }
  Shape(const Shape& other) {
    if (other.is_near()) [[likely]] {
      copy_near(other);
    } else {
      copy_far(other);
    }
  }
  Shape(Shape&& other) noexcept {
    if (other.is_near()) [[likely]] {
      copy_near(other);
    } else {
      take_far(other);
    }
  }
  Shape& operator=(const Shape& other) {
    if (is_near() && other.is_near()) [[likely]] {
      copy_near(other);
    } else {
      copy_far(other);
    }
    return *this;
  }
  Shape& operator=(Shape&& other) noexcept {
    if (is_near() && other.is_near()) [[likely]] {
      copy_near(other);
    } else {
      take_far(other);
    }
    return *this;
  }
  constexpr ~Shape() {
    if (!is_near()) [[unlikely]]
      delete[] values_;
  }
  // `count` times `value`.
  static Shape filled(int count, int64_t value) {
    Shape shape;
    for (int i = 0; i < count; ++i)
      shape.push_back(value);
    return shape;
  }
  // A list with as many entries as `other`, to be set by the caller.
  struct AsLongAs {
    const Shape& other;
  };
  explicit Shape(AsLongAs what) : size_(what.other.size_) {
    if (!is_near()) [[unlikely]] {
      size_ = 0;
      copy_far(what.other);
    }
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
    if (size_ >= kNear) [[unlikely]]
      make_room();
    values_[size_++] = value;
  }
  void pop_back() noexcept {
    if (--size_ == kNear) [[unlikely]]
      come_back();
  }
  void insert(int position, int64_t value) {
    push_back(value);
    std::rotate(values_ + position, values_ + size_ - 1, values_ + size_);
  }
  void erase(int position) noexcept {
    std::copy(values_ + position + 1, values_ + size_, values_ + position);
    pop_back();
  }

  // Product of all entries (1 for no dimensions). Throws ShapeError where it does not fit into 64
  // bits.
  int64_t numel() const {
    int64_t product = 1;
    for (int64_t value : *this) {
      if (__builtin_mul_overflow(product, value, &product)) [[unlikely]]
        throw_too_large();
    }
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
  // Longer lists lie on the heap, with room for kMaxDims entries.
  static constexpr int kNear = 6;

  constexpr bool is_near() const noexcept { return size_ <= kNear; }
  // The length is fixed, so there is no call. (A copy to itself is safe with the memcpy of every compiler.)
  void copy_near(const Shape& other) noexcept {
    __builtin_memcpy(near_, other.near_, sizeof(near_));
    size_ = other.size_;
  }
  [[gnu::cold]] void copy_far(const Shape& other);
  [[gnu::cold]] void take_far(Shape& other) noexcept;
  // Throws ShapeError if there are kMaxDims entries already.
  [[gnu::cold]] void make_room();
  [[gnu::cold]] void come_back() noexcept;
  [[noreturn, gnu::cold]] void throw_too_large() const;

  int64_t near_[kNear];
  int64_t* values_ = near_;
  int size_ = 0;
};

// Some of the dimensions of a tensor, counted from the start.
class DimSet {
 public:
  static constexpr DimSet first(int count) noexcept {
    DimSet set;
    if (count > 0) set.bits_ = ~uint64_t{0} >> (kMaxDims - count);
    return set;
  }
  constexpr bool has(int64_t dim) const noexcept { return (bits_ >> dim & 1) != 0; }
  // Returns false if `dim` is in the set already.
  constexpr bool add(int64_t dim) noexcept {
    const bool is_new = !has(dim);
    bits_ |= uint64_t{1} << dim;
    return is_new;
  }

 private:
  static_assert(kMaxDims == 64);
  uint64_t bits_ = 0;
};

// An integer type other than bool.
template <class T>
concept WholeNumber = std::integral<T> && !std::same_as<T, bool>;

// The dimensions that an operation works on: a list in braces, a Shape, or a single number.
class Dims : public Shape {
 public:
  Dims() noexcept = default;
  Dims(const Shape& dims) noexcept : Shape(dims) {}           // NOLINT
  Dims(std::initializer_list<int64_t> dims) : Shape(dims) {}  // NOLINT
  Dims(const std::vector<int64_t>& dims) : Shape(dims) {}     // NOLINT
  template <WholeNumber Dim>
  Dims(Dim dim) : Shape({static_cast<int64_t>(dim)}) {}  // NOLINT
};

// "[2, 3, 4]"
std::string to_string(const Shape& shape);

// Row-major strides, in elements. Throws ShapeError where one does not fit into 64 bits.
Shape contiguous_strides(const Shape& sizes);

// The shape both broadcast to, from the right, as NumPy does; throws ShapeError that names both
// shapes and the dimension.
Shape broadcast_shapes(const Shape& a, const Shape& b, std::source_location where = {});

// `dim` counted from the end when negative; throws IndexError with the allowed range. A tensor
// without dimensions accepts 0 and -1.
int wrap_dim(int64_t dim, int dims, std::source_location where = {});

}  // namespace brigade
