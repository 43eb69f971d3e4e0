// Adadelta (Zeiler, arXiv 1212.5701), as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

namespace brigade::optim {

// g = gradient (negated if maximize) + weight_decay * p; square_avg = rho * square_avg + (1 - rho) * g^2;
// delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g; acc_delta = rho * acc_delta + (1 - rho) * delta^2;
// p -= lr * delta.
struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid rho value: 2", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("rho", rho), f("eps", eps), f("weight_decay", weight_decay), f("maximize", maximize);
  }
};

struct AdadeltaState {
  int64_t step = 0;
  Tensor square_avg, acc_delta;
  template <class F>
  void for_each(F&& f) {
    f("square_avg", square_avg, true), f("acc_delta", acc_delta, true);
  }
};

//   optim::Adadelta optimizer(net->parameters(), {});
class Adadelta final : public GroupedOptimizer<AdadeltaOptions, AdadeltaState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
