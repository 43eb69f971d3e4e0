// The networks of the recipe `branches`.
#pragma once

#include <brigade/nn/nn.h>

#include <cstdint>

namespace brigade::lab {

// A trunk, one of several branches, a head.
struct BranchNetImpl : nn::Module {
  static constexpr int64_t kBranches = 3;
  nn::Linear trunk{nullptr}, head{nullptr};
  nn::ModuleList<nn::Linear> branches{nullptr};

  BranchNetImpl();
  // [N, 1, 8, 8], and which branch -> logits [N, 10]
  Tensor forward(const Tensor& images, int64_t branch);
};
BRIGADE_MODULE(BranchNet);

// A mixture of experts (Shazeer et al., arXiv 1701.06538; one expert per image, as in Fedus et al.,
// arXiv 2101.03961).
struct ExpertNetImpl : nn::Module {
  static constexpr int64_t kExperts = 8;
  nn::Linear trunk{nullptr}, gate{nullptr}, head{nullptr};
  nn::ModuleList<nn::Linear> experts{nullptr};
  int64_t idle = 0;  // experts that had no image in the latest forward

  ExpertNetImpl();
  // `calls_idle`: an expert without images runs on an empty batch; else it does not run.
  Tensor forward(const Tensor& images, bool calls_idle);
};
BRIGADE_MODULE(ExpertNet);

}  // namespace brigade::lab
