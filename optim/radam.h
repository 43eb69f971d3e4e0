// RAdam (Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", arXiv 1908.03265),
// as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

#include <array>

namespace brigade::optim {

// Adam whose step is multiplied by the rectification of its variance; in the first steps, where that variance is
// unbounded, the mean of the gradient is used without a divisor.
struct RAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  // p -= lr * weight_decay * p instead of adding weight_decay * p to the gradient
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid beta parameter at index 0: 1.5", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("betas.0", betas[0]), f("betas.1", betas[1]), f("eps", eps), f("weight_decay", weight_decay);
    f("decoupled_weight_decay", decoupled_weight_decay), f("maximize", maximize);
  }
};

struct RAdamState {
  int64_t step = 0;
  Tensor exp_avg, exp_avg_sq;
  static bool reads_step(const auto&) { return true; }
  template <class F>
  void for_each(F&& f) {
    f("exp_avg", exp_avg, true), f("exp_avg_sq", exp_avg_sq, true);
  }
};

//   optim::RAdam optimizer(net->parameters(), {.lr = 1e-3});
class RAdam final : public GroupedOptimizer<RAdamOptions, RAdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
