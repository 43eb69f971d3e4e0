// Adam (Kingma and Ba, arXiv 1412.6980; amsgrad: Reddi et al., ICLR 2018) and AdamW (Loshchilov and Hutter, arXiv
// 1711.05101).
#pragma once

#include <brigade/optim/optimizer.h>

namespace brigade::optim {

// kDecoupled: the weight decay of AdamW, applied to the parameter instead of the gradient, with 0.01 as its default.
template <bool kDecoupled>
struct AdamOptionsOf {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = kDecoupled ? 1e-2 : 0.0;
  bool amsgrad = false;
  bool maximize = false;

  // Throws ValueError ("Invalid beta parameter at index 0: 1.5").
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("beta1", beta1), f("beta2", beta2), f("eps", eps), f("weight_decay", weight_decay),
        f("amsgrad", amsgrad), f("maximize", maximize);
  }
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;

struct AdamState {
  int64_t step = 0;
  Tensor exp_avg, exp_avg_sq, max_exp_avg_sq;
  template <class F>
  void for_each(F&& f) {
    f("exp_avg", exp_avg), f("exp_avg_sq", exp_avg_sq), f("max_exp_avg_sq", max_exp_avg_sq);
  }
};

class Adam final : public GroupedOptimizer<AdamOptions, AdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

class AdamW final : public GroupedOptimizer<AdamWOptions, AdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
