// Optimizers with adaptive steps, as PyTorch defines them: Adagrad, RMSprop, Adadelta, RAdam, NAdam; and Lion.
#pragma once

#include <brigade/optim/optimizer.h>

#include <array>

namespace brigade::optim {

// --- Adagrad (Duchi, Hazan and Singer, JMLR 12, 2011), as PyTorch defines it.

// g = gradient (negated if maximize) + weight_decay * p; sum += g^2;
// p -= lr / (1 + (step - 1) * lr_decay) * g / (sqrt(sum) + eps).
struct AdagradOptions {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;  // of `sum`, when a parameter first moves
  double eps = 1e-10;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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

// --- RMSprop (Hinton, lecture 6e of "Neural Networks for Machine Learning", 2012; centered: Graves, arXiv 1308.0850),
// as PyTorch defines it.

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
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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

// --- Adadelta (Zeiler, arXiv 1212.5701), as PyTorch defines it.

// g = gradient (negated if maximize) + weight_decay * p; square_avg = rho * square_avg + (1 - rho) * g^2;
// delta = sqrt(acc_delta + eps) / sqrt(square_avg + eps) * g; acc_delta = rho * acc_delta + (1 - rho) * delta^2;
// p -= lr * delta.
struct AdadeltaOptions {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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

// --- RAdam (Liu et al., "On the Variance of the Adaptive Learning Rate and Beyond", arXiv 1908.03265), as PyTorch
// defines it.

// Adam whose step is multiplied by the rectification of its variance; in the first steps, where that variance is
// unbounded, the mean of the gradient is used without a divisor.
struct RAdamOptions {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool decoupled_weight_decay = false;  // p -= lr * weight_decay * p instead of adding weight_decay * p to the gradient
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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

// --- NAdam (Dozat, "Incorporating Nesterov Momentum into Adam", ICLR 2016 workshop), as PyTorch defines it.

// Adam with Nesterov's momentum, which grows: mu(t) = betas[0] * (1 - 0.96^(t * momentum_decay) / 2).
struct NAdamOptions {
  double lr = 2e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;  // p -= lr * weight_decay * p instead of adding weight_decay * p to the gradient
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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

// --- Lion (Chen et al., "Symbolic Discovery of Optimization Algorithms", arXiv 2302.06675).

// g = gradient (negated if maximize); p -= lr * weight_decay * p;
// p -= lr * sign(betas[0] * exp_avg + (1 - betas[0]) * g); exp_avg = betas[1] * exp_avg + (1 - betas[1]) * g.
// Every element moves by lr, so the authors advise a rate three to ten times smaller than AdamW's, and a weight decay
// larger by the same factor.
struct LionOptions {
  double lr = 1e-4;
  std::array<double, 2> betas = {0.9, 0.99};
  double weight_decay = 0;
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)

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
