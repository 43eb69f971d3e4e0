// Sizes, strides, and offsets that overflow 64 bits are errors and never wrap around.
#include "core/error_of.h"

#include <brigade/core/allocator.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace brigade::test::sizes_test {
using brigade::test::error_of;

namespace {

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t k2to32 = int64_t{1} << 32;
constexpr int64_t k2to62 = int64_t{1} << 62;

struct Row {
  const char* what;
  std::function<void()> action;
  const char* error;  // a substring of the message
};

void check(const std::vector<Row>& rows) {
  for (const Row& row : rows) {
    CAPTURE(row.what);
    const std::string error = error_of(row.action);
    CAPTURE(error);
    CHECK(error.find(row.error) != std::string::npos);
  }
}

}  // namespace

TEST_CASE("every step with a Size is exact, or throws with both numbers") {
  CHECK((Size(3) * 4 + 5 - 7).value() == 10);
  CHECK((Size(2) * Size(3) + Size(1) - Size(9)).value() == -2);
  CHECK((Size(kMost) + 0 - kMost).value() == 0);
  CHECK((Size(k2to62) * -2).value() == kLeast);
  CHECK(checked_bytes(3, 8) == 24);
  CHECK(checked_bytes(kMost, 2) == 2 * static_cast<size_t>(kMost));
  check({{"sum", [] { Size(kMost) + 1; }, "sizes overflow: 9223372036854775807 + 1 does not fit into 64 bits"},
         {"difference", [] { Size(kLeast) - 1; }, "-9223372036854775808 - 1 does not fit"},
         {"product", [] { Size(k2to32) * k2to32; }, "4294967296 * 4294967296 does not fit"},
         {"of two", [] { Size(k2to62) * Size(2); }, "4611686018427387904 * 2 does not fit"},
         {"in place", [] { Size(k2to62) *= 4; }, "4611686018427387904 * 4 does not fit"},
         {"bytes", [] { checked_bytes(k2to62, 4); }, "4611686018427387904 * 4 does not fit"},
         {"negative count", [] { checked_bytes(-1, 4); }, "-1 * 4 does not fit"}});
}

TEST_CASE("a shape with more elements than fit into 64 bits is refused by all that make tensors of it") {
  const Tensor x = tensor<float>({1});
  static float memory[1] = {1};
  check({{"numel",
          [] {
            (void)Shape({k2to32, k2to32}).numel();
          },
          "[4294967296, 4294967296] has more elements than fit"},
         {"strides",
          [] {
            contiguous_strides({0, k2to62, 8});
          },
          "8 * 4611686018427387904 does not fit"},
         {"empty",
          [] {
            empty({k2to32, k2to32});
          },
          "[4294967296, 4294967296] overflow the address space"},
         {"empty without elements",
          [] {
            empty({0, k2to62, 8});
          },
          "does not fit into 64 bits"},
         {"bytes of empty", [] { empty({k2to62 + 4}); }, "overflow the address space"},
         {"from_blob",
          [] {
            from_blob(memory, {k2to32, k2to32});
          },
          "overflow the address space"},
         {"bytes of from_blob", [] { from_blob(memory, {k2to62 + 1}); }, "overflow the address space"},
         {"negative from_blob",
          [] {
            from_blob(memory, {-1, -1});
          },
          "must not be negative, got [-1, -1]"},
         {"from_values",
          [] {
            tensor(std::vector<float>{}, {k2to32, k2to32});
          },
          "has more elements than fit"},
         {"expand",
          [&] {
            view::expand(x, {k2to32, k2to32});
          },
          "has more elements than fit into 64 bits"},
         {"bytes of a view", [&] { (void)view::expand(x, {k2to62}).nbytes(); }, "4611686018427387904 * 4 does not fit"},
         {"reshape",
          [&] {
            view::infer_sizes({k2to32, k2to32}, 0);
          },
          "does not fit 0 elements"},
         {"reshape to one less",
          [] {
            view::infer_sizes({k2to32, k2to32, -1}, 0);
          },
          "does not fit 0 elements"}});
  CHECK(view::expand(x, {k2to62, 1}).numel() == k2to62);
  CHECK(empty({int64_t{1} << 33, 0}).numel() == 0);
}

TEST_CASE("views that would reach outside by a number that has wrapped are refused") {
  const Tensor x = tensor<float>({0, 1, 2, 3});
  check({{"stride", [&] { view::as_strided(x, {5}, {k2to62}, 0); }, "4 * 4611686018427387904 does not fit"},
         {"sum of reaches",
          [&] {
            view::as_strided(x, {2, 2}, {k2to62, k2to62}, 0);
          },
          "does not fit into 64 bits"},
         {"offset", [&] { view::as_strided(x, {2}, {1}, kMost); }, "does not fit into 64 bits"},
         {"negative offset", [&] { view::as_strided(x, {0}, {1}, -1); }, "the offset must not be negative, got -1"},
         {"negative size",
          [&] {
            view::as_strided(x, {-1, 1}, {1, 1}, 0);
          },
          "sizes must not be negative, got [-1, 1]"},
         {"select", [&] { view::select(x, 0, kLeast); }, "index -9223372036854775808 is out of range"}});
}

TEST_CASE("slices with steps and ends beyond any tensor take what there is") {
  const Tensor x = tensor<float>({0, 1, 2, 3});
  struct Slice {
    int64_t start, end, step;
    std::vector<float> values;
  };
  for (const auto& [start, end, step, values] : std::vector<Slice>{{0, kMost, 1, {0, 1, 2, 3}},
                                                                   {0, kMost, k2to62, {0}},
                                                                   {1, kMost, kMost, {1}},
                                                                   {kLeast, kMost, 3, {0, 3}},
                                                                   {2, 2, kMost, {}},
                                                                   {kMost, kMost, kMost, {}}}) {
    CAPTURE(start);
    CAPTURE(step);
    const Tensor part = view::slice(x, 0, start, end, step);
    CHECK(part.sizes() == Shape{static_cast<int64_t>(values.size())});
    CHECK(part.to_vector<float>() == values);
    CHECK(view::slice(part, 0, 0, kMost, kMost).numel() == std::min<int64_t>(part.numel(), 1));
  }
}

TEST_CASE("the allocator refuses what no address space holds, instead of rounding it up to nothing") {
  for (const size_t bytes :
       {std::numeric_limits<size_t>::max(), std::numeric_limits<size_t>::max() - 70, size_t{1} << 50}) {
    CAPTURE(bytes);
    CHECK_THROWS_AS(cpu_allocate(bytes), OutOfMemoryError);
  }
}

}  // namespace brigade::test::sizes_test
