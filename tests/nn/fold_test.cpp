#include "printed.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/random.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <doctest/doctest.h>

namespace brigade::test::fold_test {

TEST_CASE("Unfold, Fold and the shuffles of pixels hand their options on") {
  const Tensor x = randn({2, 4, 6, 8});
  const auto same = [](const Tensor& a, const Tensor& b) {
    return a.sizes() == b.sizes() && a.to_vector<float>() == b.to_vector<float>();
  };
  nn::Unfold unfolded({2, 3}, {.dilation = 2, .padding = {1, 0}, .stride = {1, 2}});
  const FoldOptions options{.dilation = 2, .padding = {1, 0}, .stride = {1, 2}};
  CHECK(same(unfolded(x), unfold(x, {2, 3}, options)));
  CHECK(printed(unfolded) == "Unfold(kernel_size=[2, 3], dilation=[2, 2], padding=[1, 0], stride=[1, 2])");
  nn::Fold folded({6, 8}, {2, 3}, {.dilation = 2, .padding = {1, 0}, .stride = {1, 2}});
  CHECK(same(folded(unfolded(x)), fold(unfold(x, {2, 3}, options), {6, 8}, {2, 3}, options)));
  CHECK(printed(folded) ==
        "Fold(output_size=[6, 8], kernel_size=[2, 3], dilation=[2, 2], padding=[1, 0], stride=[1, 2])");
  nn::PixelShuffle shuffle(2);
  CHECK(same(shuffle(x), pixel_shuffle(x, 2)));
  CHECK(printed(shuffle) == "PixelShuffle(upscale_factor=2)");
  nn::PixelUnshuffle unshuffle(2);
  CHECK(same(unshuffle(x), pixel_unshuffle(x, 2)));
  CHECK(printed(unshuffle) == "PixelUnshuffle(downscale_factor=2)");
  CHECK_THROWS_WITH_AS(nn::Unfold(0), doctest::Contains("Unfold: kernel_size"), ValueError);
  CHECK_THROWS_WITH_AS(nn::Fold({0, 2}, 1), doctest::Contains("Fold: output_size must be at least 1, got 0"),
                       ValueError);
  CHECK_THROWS_WITH_AS(nn::PixelShuffle(0), doctest::Contains("upscale_factor must be at least 1"), ValueError);
}

}  // namespace brigade::test::fold_test
