// Scalar: a number among tensor operands, with its kind: a truth value, an integer or a
// floating-point number. Its C++ type, never its value, decides the dtype of a result, as in
// PyTorch.
//
//   i * 2 is int64 for an int64 tensor i, i * 2.0 is float32
#pragma once

#include <brigade/core/dtype.h>

#include <cstdint>
#include <string>
#include <type_traits>

namespace brigade {

class Scalar {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>
  constexpr Scalar(T value) noexcept {  // NOLINT: meant to be implicit
    if constexpr (std::is_same_v<T, bool>) {
      kind_ = Kind::Bool;
      whole_ = value ? 1 : 0;
    } else if constexpr (std::is_integral_v<T>) {
      kind_ = Kind::Integer;
      whole_ = static_cast<int64_t>(value);
    } else {
      kind_ = Kind::Floating;
      real_ = static_cast<double>(value);
    }
  }

  constexpr bool is_floating_point() const noexcept { return kind_ == Kind::Floating; }
  constexpr bool is_bool() const noexcept { return kind_ == Kind::Bool; }
  // The dtype of a tensor that is made of the number alone: float32, int64 or bool.
  constexpr DType dtype() const noexcept { return is_floating_point() ? kFloat32 : is_bool() ? kBool : kInt64; }

  // Converts to a C++ number. An integer type truncates the fraction and wraps around, so that -1
  // and 300 mean for uint8 what they mean in PyTorch; a value that 64 bits cannot hold becomes 0.
  template <class T>
  requires std::is_arithmetic_v<T>
  constexpr T to() const noexcept {
    if constexpr (std::is_same_v<T, bool>) {
      return is_floating_point() ? real_ != 0 : whole_ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      if (!is_floating_point()) return static_cast<T>(whole_);
      return real_ > -0x1p63 && real_ < 0x1p63 ? static_cast<T>(static_cast<int64_t>(real_)) : T(0);
    } else {
      return is_floating_point() ? static_cast<T>(real_) : static_cast<T>(whole_);
    }
  }

  // Keeps the kind, except that a truth value becomes an integer.
  constexpr Scalar operator-() const noexcept {
    if (is_floating_point()) return -real_;
    return static_cast<int64_t>(-static_cast<uint64_t>(whole_));
  }

 private:
  enum class Kind : uint8_t { Bool, Integer, Floating };

  union {
    double real_;
    int64_t whole_;
  };
  Kind kind_;
};

// "2", "0.5", "true"; for messages.
inline std::string to_string(Scalar number) {
  if (number.is_floating_point()) return detail::in_words(number.to<double>());
  return number.is_bool() ? detail::in_words(number.to<bool>()) : std::to_string(number.to<int64_t>());
}

}  // namespace brigade
