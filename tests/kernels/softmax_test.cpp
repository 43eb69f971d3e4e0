// Softmax along any dimension.
#include <brigade/kernels/activation.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace brigade::test::softmax_test {
using namespace brigade::kernels;
using test::at;
using test::random;

TEST_CASE("softmax stays finite for large logits and sums to one along any dimension") {
  const Tensor x = tensor(std::vector<float>{1000, 1001, -1000, 0, 0, 0}, {2, 3});
  const Tensor p = softmax(x, 1);
  CHECK(at(p, 1) == doctest::Approx(1 / (1 + std::exp(-1.0))));
  CHECK(at(p, 2) == 0);
  const Tensor q = softmax(random({2, 5, 3}, 1), 1);
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t j = 0; j < 3; ++j) {
      double sum = 0;
      for (int64_t c = 0; c < 5; ++c)
        sum += at(q, (n * 5 + c) * 3 + j);
      CHECK(sum == doctest::Approx(1));
    }
  }
}

}  // namespace brigade::test::softmax_test
