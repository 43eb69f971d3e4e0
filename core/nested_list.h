// NestedList: the braces of tensor({{1, 2}, {3, 4}}): a number, or a list of entries of the same shape.
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/shape.h>

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <type_traits>
#include <vector>

namespace brigade {

class NestedList {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> NestedList(T value)  // NOLINT: meant to be implicit
      : kind_(std::is_floating_point_v<T> ? Kind::Floating
              : std::same_as<T, bool>     ? Kind::Bool
                                          : Kind::Integer),
        numbers_{{static_cast<double>(value), whole(value)}} {}
  // Throws ShapeError for entries of different shapes.
  NestedList(std::initializer_list<NestedList> entries);

  const Shape& sizes() const noexcept { return sizes_; }
  int64_t numel() const noexcept { return static_cast<int64_t>(numbers_.size()); }
  // bool, int64 for whole numbers of any type, else float32, as in libtorch; the widest of them for mixed entries.
  DType dtype() const noexcept;
  // An element by its row-major position, as T.
  template <class T>
  T value(int64_t i) const noexcept {
    const Number& number = numbers_[static_cast<size_t>(i)];
    if constexpr (std::is_integral_v<T>) {
      if (kind_ != Kind::Floating) return static_cast<T>(number.whole);
    }
    return static_cast<T>(number.value);
  }

 private:
  enum class Kind { Bool, Integer, Floating };
  struct Number {
    double value;
    int64_t whole;  // exact, if the list has no fractions
  };
  template <class T>
  static int64_t whole(T value) noexcept {
    if constexpr (std::is_integral_v<T>) return static_cast<int64_t>(value);
    return 0;
  }

  Kind kind_ = Kind::Floating;
  Shape sizes_;
  std::vector<Number> numbers_;  // row-major
};

}  // namespace brigade
