// Dropout draws its mask from the documented random stream.
#include <brigade/kernels/activation.h>

#include <kernels/values.h>

#include <doctest/doctest.h>

namespace brigade::test::dropout_test {
using namespace brigade::kernels;
using test::at;
using test::largest_difference;

TEST_CASE("dropout keeps by the documented stream and repeats from its position") {
  const Tensor x = ones({10'003});
  const PhiloxState state{5, 7};
  const Tensor y = dropout(x, 0.25, state);
  int64_t kept = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const bool expected = uniform_from_word(state.word(static_cast<uint64_t>(i))) >= 0.25F;
    REQUIRE(at(y, i) == doctest::Approx(expected ? 1 / 0.75 : 0));
    kept += expected;
  }
  CHECK(static_cast<double>(kept) / 10'003 == doctest::Approx(0.75).epsilon(0.02));
  CHECK(largest_difference(dropout(x, 0.25, state), y) == 0);
  CHECK(at(dropout(x, 1, state), 3) == 0);
}

}  // namespace brigade::test::dropout_test
