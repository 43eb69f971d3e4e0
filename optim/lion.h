// Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", arXiv 2302.06675).
#pragma once

#include <brigade/optim/optimizer.h>

#include <array>

namespace brigade::optim {

// g = gradient (negated if maximize); p -= lr * weight_decay * p;
// p -= lr * sign(betas[0] * exp_avg + (1 - betas[0]) * g); exp_avg = betas[1] * exp_avg + (1 - betas[1]) * g.
// Every element moves by lr, so the authors advise a rate three to ten times smaller than AdamW's, and a weight decay
// larger by the same factor.
struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid beta parameter at index 0: 1.5", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("betas.0", betas[0]), f("betas.1", betas[1]), f("weight_decay", weight_decay);
    f("maximize", maximize);
  }
};

struct LionState {
  int64_t step = 0;
  Tensor exp_avg;
  template <class F>
  void for_each(F&& f) {
    f("exp_avg", exp_avg, true);
  }
};

//   optim::Lion optimizer(net->parameters(), {.lr = 1e-4, .weight_decay = 0.1});
class Lion final : public GroupedOptimizer<LionOptions, LionState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
