// NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", ICLR 2016 workshop), as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

#include <array>

namespace brigade::optim {

// Adam with Nesterov's momentum, which grows: mu(t) = betas[0] * (1 - 0.96^(t * momentum_decay) / 2).
struct NAdamOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // p -= lr * weight_decay * p instead of adding weight_decay * p to the gradient
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid beta parameter at index 0: 1.5", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("betas.0", betas[0]), f("betas.1", betas[1]), f("eps", eps), f("weight_decay", weight_decay);
    f("momentum_decay", momentum_decay);
    f("decoupled_weight_decay", decoupled_weight_decay), f("maximize", maximize);
  }
};

struct NAdamState {
  int64_t step = 0;
  double mu_product = 1;  // mu(1) * ... * mu(step)
  Tensor exp_avg, exp_avg_sq;
  static bool reads_step(const auto&) { return true; }
  template <class F>
  void for_each(F&& f) {
    f("exp_avg", exp_avg, true), f("exp_avg_sq", exp_avg_sq, true);
  }
  template <class F>
  void for_each_number(F&& f) {
    f("mu_product", mu_product);
  }
};

//   optim::NAdam optimizer(net->parameters(), {.lr = 2e-3});
class NAdam final : public GroupedOptimizer<NAdamOptions, NAdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
