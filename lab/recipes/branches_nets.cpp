// Sends a batch through one branch, or each of its images to an expert.
#include <brigade/lab/recipes/branches_nets.h>

#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

namespace brigade::lab {
namespace {

constexpr int64_t kWidth = 64;

nn::ModuleList<nn::Linear> layers(int64_t count) {
  nn::ModuleList<nn::Linear> list;
  for (int64_t i = 0; i < count; ++i)
    list->push_back(nn::Linear(kWidth, kWidth));
  return list;
}

Tensor pixels_of(const Tensor& images) { return ((images - 0.3053) / 0.3760).flatten(1); }

}  // namespace

BranchNetImpl::BranchNetImpl() {
  trunk = register_module("trunk", nn::Linear(64, kWidth));
  branches = register_module("branches", layers(kBranches));
  head = register_module("head", nn::Linear(kWidth, 10));
}

Tensor BranchNetImpl::forward(const Tensor& images, int64_t branch) {
  const Tensor features = gelu(trunk(pixels_of(images)));
  return head(features + gelu((*branches)[static_cast<size_t>(branch)](features)));
}

ExpertNetImpl::ExpertNetImpl() {
  trunk = register_module("trunk", nn::Linear(64, kWidth));
  gate = register_module("gate", nn::Linear(kWidth, kExperts));
  experts = register_module("experts", layers(kExperts));
  head = register_module("head", nn::Linear(kWidth, 10));
}

Tensor ExpertNetImpl::forward(const Tensor& images, bool calls_idle) {
  const Tensor features = gelu(trunk(pixels_of(images)));
  const auto [weight, expert] = max(softmax(gate(features), 1), 1);
  Tensor mixed = features;
  idle = 0;
  for (int64_t i = 0; i < kExperts; ++i) {
    const Tensor chosen = nonzero(eq(expert, static_cast<double>(i))).flatten();  // [images of this expert]
    if (chosen.numel() == 0) ++idle;
    if (chosen.numel() == 0 && !calls_idle) continue;
    const Tensor answer = gelu((*experts)[static_cast<size_t>(i)](index_select(features, 0, chosen)));
    // The weight lets the gradient reach the gate: the choice itself has no derivative.
    const Tensor weighted = answer * index_select(weight, 0, chosen).unsqueeze(1);
    mixed = index_add(mixed, 0, chosen, weighted.to(mixed.dtype()));
  }
  return head(mixed);
}

}  // namespace brigade::lab
