// A small U-Net (Ronneberger, Fischer and Brox, arXiv 1505.04597) with an output at each of three
// scales (deep supervision: Lee et al., arXiv 1409.5185).
#pragma once

#include <brigade/nn/nn.h>

#include <vector>

namespace brigade::lab {

struct SmallUNetImpl : nn::Module {
  nn::Conv2d down_fine{nullptr}, down_middle{nullptr}, bottom{nullptr}, up_middle{nullptr}, up_fine{nullptr};
  nn::Conv2d head_fine{nullptr}, head_middle{nullptr}, head_coarse{nullptr};

  SmallUNetImpl();
  // Images [n, 1, H, W], H and W multiples of 4 -> logits of the mask, at full, half and quarter
  // size: [n, 1, H, W], [n, 1, H / 2, W / 2], [n, 1, H / 4, W / 4].
  std::vector<Tensor> forward(const Tensor& images);
};
BRIGADE_MODULE(SmallUNet);

// The same, with what each scale counts in the loss as a tensor [3] of the module.
struct WeightedUNetImpl : SmallUNetImpl {
  Tensor weights;
  // As a buffer: it is saved with the model, moves with it, is the same on all ranks, and is not
  // trained. As a parameter it would be trained as well.
  WeightedUNetImpl(const std::vector<double>& weights, bool as_parameter);
};
BRIGADE_MODULE(WeightedUNet);

}  // namespace brigade::lab
