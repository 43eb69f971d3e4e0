// Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011), as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

namespace brigade::optim {

// g = gradient (negated if maximize) + weight_decay * p; sum += g^2;
// p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps).
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;  // of `sum`, when a parameter first moves
  double eps = 1e-10;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid lr_decay value: -1", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("lr_decay", lr_decay), f("weight_decay", weight_decay);
    f("initial_accumulator_value", initial_accumulator_value), f("eps", eps), f("maximize", maximize);
  }
};

struct AdagradState {
  int64_t step = 0;
  Tensor sum;
  static bool reads_step(const AdagradOptions& options) { return options.lr_decay != 0; }
  template <class F>
  void for_each(F&& f) {
    f("sum", sum, true);
  }
};

//   optim::Adagrad optimizer(net->parameters(), {.lr = 0.01});
class Adagrad final : public GroupedOptimizer<AdagradOptions, AdagradState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
