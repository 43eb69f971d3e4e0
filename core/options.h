// Members of options structs: NamedOnly, and sizes in two dimensions.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace brigade {

// --- NamedOnly: the first member of options structs whose members must be named.
//
// `{.stride = 2}` makes such options; `{2, 1}` does not compile, since in LibTorch braces without names are an argument
// of their own: a stride of 2 by 1.

struct NamedOnly {
  constexpr explicit NamedOnly() noexcept = default;
};

// --- Height and width of a kernel, a stride or a padding, written as one number where both are equal.

// Size2(3) and 3 mean {3, 3}; {3, 5} is height 3, width 5.
struct Size2 {
  std::array<int64_t, 2> values;

  constexpr Size2(int64_t both) noexcept : values{both, both} {}  // NOLINT: written as a number
  constexpr Size2(int64_t height, int64_t width) noexcept : values{height, width} {}
  constexpr Size2(const std::array<int64_t, 2>& pair) noexcept : values(pair) {}  // NOLINT
  constexpr operator std::array<int64_t, 2>() const noexcept { return values; }   // NOLINT
  constexpr int64_t operator[](size_t i) const noexcept { return values[i]; }
  constexpr bool operator==(const Size2&) const = default;

  // "[3, 5]"
  friend std::string to_string(const Size2& size) {
    return "[" + std::to_string(size[0]) + ", " + std::to_string(size[1]) + "]";
  }
};

// A size that may be left out.
struct OptionalSize2 : std::optional<Size2> {
  using std::optional<Size2>::optional;
  constexpr OptionalSize2(int64_t height, int64_t width) noexcept : std::optional<Size2>(Size2(height, width)) {}
};

}  // namespace brigade
