// Master weights: float32 copies of half parameters (Micikevicius et al., Mixed Precision Training,
// ICLR 2018, section 3.1). A step moves the copy, and the parameter is what the copy rounds to; so
// steps that are too small for the spacing of a half type add up instead of being lost.
#pragma once

#include <brigade/core/tensor.h>

#include <span>
#include <unordered_map>
#include <vector>

namespace brigade::optim::detail {

class MasterWeights {
 public:
  // The copies, created if missing. If a parameter was written to since its last step (a loaded model, copy_), the copy
  // takes over its values, but only those elements that are not what the copy rounds to.
  std::vector<Tensor> of(std::span<const Tensor> parameters);
  // Rounds the moved copies into the parameters. Call settle() afterwards.
  void round_into(std::span<const Tensor> parameters) const;
  // Notes the parameter's version as that of its own step.
  void settle(const Tensor& parameter);

  // The copy of a parameter; undefined if there is none.
  Tensor find(const Tensor& parameter) const;
  void put(const Tensor& parameter, Tensor copy);

 private:
  struct Copy {
    Tensor values;         // float32, contiguous
    int64_t version = -1;  // of the parameter, when it was last what `values` round to; -1: not known
  };
  std::unordered_map<const TensorImpl*, Copy> copies_;  // the optimizer keeps the parameters alive
};

}  // namespace brigade::optim::detail
