// Operations report a result whose size overflows 64 bits.
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace brigade::test::sizes_test {
namespace {
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t k2to32 = int64_t{1} << 32;
constexpr int64_t k2to62 = int64_t{1} << 62;
}  // namespace

TEST_CASE("sizes that overflow are refused by every operation that computes a shape from numbers of its caller") {
  struct Row {
    const char* what;
    std::function<Tensor()> call;
    const char* error;
  };
  const Tensor vector = ones({4});
  const Tensor square = ones({2, 2});
  const Tensor image = ones({1, 4, 2, 2});
  const Tensor dot = ones({1, 4, 1, 1});
  const Tensor huge = ones({1}).expand({k2to62});
  const Tensor huge_empty = ones({1, 0}).expand({k2to62, 0});
  const Row rows[] = {
      {"eye", [&] { return eye(k2to32, k2to32); }, "overflow the address space"},
      {"arange", [&] { return arange(0, 1e19); }, "fewer than 2^63"},
      {"endless arange", [&] { return arange(0, INFINITY); }, "expected finite numbers"},
      {"arange to a NaN", [&] { return arange(0, NAN); }, "expected finite numbers"},
      {"linspace", [&] { return linspace(0, 1, k2to62); }, "overflow the address space"},
      {"randint",
       [&] {
         return randint(0, 5, {k2to62, 4});
       },
       "overflow the address space"},
      {"randperm", [&] { return randperm(k2to62); }, "overflow the address space"},
      {"negative randperm", [&] { return randperm(-1); }, "the count must not be negative, got -1"},
      {"reshape",
       [&] {
         return vector.reshape({k2to32, k2to32});
       },
       "does not fit 4 elements"},
      {"expand",
       [&] {
         return square.expand({k2to62, 2, 2});
       },
       "more elements than fit into 64 bits"},
      {"flatten",
       [&] {
         return ones({0, 1, 1}).expand({0, k2to62, 4}).flatten(1, 2);
       },
       "4611686018427387904 * 4 does not fit"},
      {"narrow", [&] { return vector.narrow(0, 1, kMost); },
       "start 1 and length 9223372036854775807 exceed dimension 0"},
      {"narrow before the start", [&] { return vector.narrow(0, kLeast, 1); }, "exceed dimension 0"},
      {"pad",
       [&] {
         return pad(vector, {kMost, 0});
       },
       "4 + 9223372036854775807 does not fit"},
      {"pad on both sides",
       [&] {
         return pad(vector, {k2to62, k2to62});
       },
       "does not fit into 64 bits"},
      {"pad that takes too much away",
       [&] {
         return pad(vector, {kLeast, 0});
       },
       "more elements are taken away"},
      {"pad by one element",
       [&] {
         return pad(vector, {kMost, 0}, PadMode::Replicate);
       },
       "does not fit into 64 bits"},
      {"repeat", [&] { return repeat(ones({2}), {kMost}); }, "2 * 9223372036854775807 does not fit"},
      {"tile", [&] { return tile(ones({2}), {k2to62}); }, "2 * 4611686018427387904 does not fit"},
      {"repeat_interleave", [&] { return repeat_interleave(ones({2}), kMost, 0); }, "does not fit into 64 bits"},
      {"diag_embed", [&] { return diag_embed(vector, kMost); }, "4 + 9223372036854775807 does not fit"},
      {"diag_embed below", [&] { return diag_embed(vector, kLeast); }, "4 - -9223372036854775808 does not fit"},
      {"cat",
       [&] {
         return cat({huge, huge});
       },
       "4611686018427387904 + 4611686018427387904 does not fit"},
      {"cat of nothing",
       [&] {
         return cat({huge_empty, huge_empty});
       },
       "does not fit into 64 bits"},
      {"one_hot", [&] { return one_hot(tensor<int64_t>({1}), k2to62); }, "overflow the address space"},
      {"sum of stretched",
       [&] {
         return ones({1, 1}).expand({k2to32, 1}) + ones({1, 1}).expand({1, k2to32});
       },
       "overflow the address space"},
      {"outer", [&] { return outer(ones({1}).expand({k2to32}), ones({1}).expand({k2to32})); },
       "overflow the address space"},
      {"kron", [&] { return kron(ones({1}).expand({k2to62}), ones({1}).expand({2})); }, "does not fit into 64 bits"},
      {"pixel_shuffle", [&] { return pixel_shuffle(image, k2to32); }, "4294967296 * 4294967296 does not fit"},
      {"pixel_unshuffle",
       [&] {
         return pixel_unshuffle(ones({0, 1, 2, 2}).expand({0, k2to62, 2, 2}), 2);
       },
       "does not fit"},
      {"unfold",
       [&] {
         return unfold(image, {k2to62, 1}, {.padding = {k2to62, 0}});
       },
       "does not fit"},
      {"fold",
       [&] {
         return fold(ones({1, 1, 2}), {k2to32, k2to32}, 1);
       },
       "does not fit"},
      {"conv2d",
       [&] {
         return conv2d(image, dot, {}, {.padding = {k2to62, k2to62}});
       },
       "does not fit into 64 bits"},
      {"dilated conv2d",
       [&] {
         return conv2d(image, ones({1, 4, 3, 3}), {}, {.dilation = {k2to62, k2to62}});
       },
       "does not fit into 64 bits"},
      {"grouped conv2d",
       [&] {
         return conv2d(image, ones({1, 4, 1, 1}), {}, {.groups = k2to62});
       },
       "does not fit"},
      {"conv_transpose2d",
       [&] {
         return conv_transpose2d(image, ones({4, 1, 1, 1}), {},
                                 {.stride = {kMost, kMost}, .padding = {0, 0}, .output_padding = {1, 1}});
       },
       "does not fit into 64 bits"},
      {"max_pool2d",
       [&] {
         return max_pool2d(image, {k2to32, 2});
       },
       "below 2^31"},
      {"avg_pool2d",
       [&] {
         return avg_pool2d(image, 2, {.stride = {k2to32, 1}});
       },
       "below 2^31"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    CHECK_THROWS_WITH_AS(row.call(), doctest::Contains(row.error), Error);
  }
}

TEST_CASE("numbers far beyond a tensor are not refused where they ask for nothing that is not there") {
  const Tensor vector = arange(0, 3, 1, kFloat32);
  const Tensor square = ones({2, 2});
  CHECK(diagonal(square, kMost).numel() == 0);
  CHECK(diagonal(square, kLeast).numel() == 0);
  CHECK(roll(vector, {kMost}, {0}).to_vector<float>() == roll(vector, {kMost % 3}, {0}).to_vector<float>());
  CHECK(roll(vector, {kLeast}, {0}).to_vector<float>() == roll(vector, {kLeast % 3}, {0}).to_vector<float>());
  CHECK(roll(vector, {kMost, kMost}, {0, 0}).to_vector<float>() ==
        roll(vector, {2 * (kMost % 3)}, {0}).to_vector<float>());
  CHECK(tril(square, kMost).to_vector<float>() == std::vector<float>(4, 1));
  CHECK(triu(square, kLeast).to_vector<float>() == std::vector<float>(4, 1));
  CHECK(split(vector, kMost).size() == 1);
  CHECK(chunk(vector, kMost).size() == 3);
  CHECK(vector.slice(0, 0, kMost, k2to62).to_vector<float>() == std::vector<float>{0});
  CHECK(eye(int64_t{1} << 33, 0).numel() == 0);
  CHECK(conv2d(ones({1, 1, 2, 2}), ones({1, 1, 1, 1}), {}, {.stride = {kMost, kMost}}).to_vector<float>() ==
        std::vector<float>{1});
  const std::vector<int64_t> any = randint(kLeast, kMost, {100}).to_vector<int64_t>();
  CHECK(std::count_if(any.begin(), any.end(), [](int64_t i) { return i < 0; }) > 20);
  CHECK(std::count_if(any.begin(), any.end(), [](int64_t i) { return i > 0; }) > 20);
}

TEST_CASE("eye has ones on its diagonal in every shape") {
  CHECK(eye(2, 3).to_vector<float>() == std::vector<float>{1, 0, 0, 0, 1, 0});
  CHECK(eye(3, 2, kInt64).to_vector<int64_t>() == std::vector<int64_t>{1, 0, 0, 1, 0, 0});
  CHECK(eye(0, 2).sizes() == Shape{0, 2});
}

}  // namespace brigade::test::sizes_test
