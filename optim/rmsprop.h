// RMSprop (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; centered: Graves,
// arXiv 1308.0850), as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

namespace brigade::optim {

// g = gradient (negated if maximize) + weight_decay * p; square_avg = alpha * square_avg + (1 - alpha) * g^2;
// centered: grad_avg is the same average of g, and its square is subtracted from square_avg under the root;
// d = sqrt(...) + eps. With momentum buffer = momentum * buffer + g / d and p -= lr * buffer, else p -= lr * g / d.
struct RMSpropOptions {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/master_weights.h)

  // Throws ValueError: "Invalid learning rate: -1", "Invalid alpha value: -1", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("alpha", alpha), f("eps", eps), f("weight_decay", weight_decay), f("momentum", momentum);
    f("centered", centered), f("maximize", maximize);
  }
};

struct RMSpropState {
  int64_t step = 0;
  Tensor square_avg;
  Tensor grad_avg;         // from the first step with `centered` on
  Tensor momentum_buffer;  // from the first step with momentum on
  template <class F>
  void for_each(F&& f) {
    f("square_avg", square_avg, true), f("grad_avg", grad_avg, false), f("momentum_buffer", momentum_buffer, false);
  }
};

//   optim::RMSprop optimizer(net->parameters(), {.lr = 1e-3, .momentum = 0.9});
class RMSprop final : public GroupedOptimizer<RMSpropOptions, RMSpropState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
