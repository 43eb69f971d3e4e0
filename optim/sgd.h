// Stochastic gradient descent with momentum and Nesterov's variant (Sutskever et al., ICML 2013),
// as PyTorch defines it.
#pragma once

#include <brigade/optim/optimizer.h>

namespace brigade::optim {

// g = gradient (negated if maximize) + weight_decay * p; buffer = momentum * buffer + (1 -
// dampening) * g (g itself in a parameter's first step); g = nesterov ? g + momentum * buffer :
// buffer; p -= lr * g.
struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)
  // Keep the learning rate on the device, so that set_lr() (a schedule) reaches steps captured into a CUDA graph.
  bool capturable = false;

  // Throws ValueError: "Invalid learning rate: -1", "Nesterov momentum requires a momentum and zero
  // dampening".
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("momentum", momentum), f("dampening", dampening), f("weight_decay", weight_decay);
    f("nesterov", nesterov), f("maximize", maximize);
  }
};

struct SGDState {
  int64_t step = 0;
  Tensor momentum_buffer;  // from the first step with momentum on
  template <class F>
  void for_each(F&& f) {
    f("momentum_buffer", momentum_buffer, false);
  }
};

//   optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
class SGD final : public GroupedOptimizer<SGDOptions, SGDState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;
  bool keeps_state() const override;
  bool takes_grad_factor() const override { return true; }
  bool can_step_unknown() const override;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
