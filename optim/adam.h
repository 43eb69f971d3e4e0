// Adam (Kingma and Ba, arXiv 1412.6980; amsgrad: Reddi et al., ICLR 2018) and AdamW (Loshchilov and
// Hutter, arXiv 1711.05101).
#pragma once

#include <brigade/optim/detail/device_state.h>
#include <brigade/optim/optimizer.h>

#include <array>
#include <memory>

namespace brigade::optim {

// kDecoupled: the weight decay of AdamW, p -= lr * weight_decay * p, instead of adding weight_decay * p to the
// gradient, with 0.01 as its default.
template <bool kDecoupled>
struct AdamOptionsOf {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};  // of the running means of the gradient and of its square
  double eps = 1e-8;
  double weight_decay = kDecoupled ? 1e-2 : 0.0;
  bool amsgrad = false;  // divide by the largest running mean of squares so far
  bool maximize = false;
  bool master_weights = false;  // float32 copies of half parameters (optim/detail/device_state.h)
  // Count the steps on the device, so that a step can be captured into a CUDA graph and skipped by a capturable loss
  // scaler. The learning rate is kept there too, so that set_lr() (a schedule) reaches captured steps. Not part of a
  // saved state, which can be loaded with and without it.
  bool capturable = false;

  // Throws ValueError: "Invalid learning rate: -1", "Invalid beta parameter at index 0: 1.5", ...
  void check() const;
  template <class F>
  void for_each(F&& f) {
    f("lr", lr), f("betas.0", betas[0]), f("betas.1", betas[1]), f("eps", eps), f("weight_decay", weight_decay);
    f("amsgrad", amsgrad), f("maximize", maximize);
  }
};
using AdamOptions = AdamOptionsOf<false>;
using AdamWOptions = AdamOptionsOf<true>;

struct AdamState {
  int64_t step = 0;  // the host's count; a clock overrides it
  Tensor exp_avg, exp_avg_sq;
  Tensor max_exp_avg_sq;                     // from the first step with amsgrad on
  std::shared_ptr<detail::AdamClock> clock;  // from the first step with capturable on
  static bool reads_step(const auto&) { return true; }
  // Reads the count from the device if it is kept there.
  int64_t steps() const { return clock ? clock->steps() : step; }
  template <class F>
  void for_each(F&& f) {
    f("exp_avg", exp_avg, true), f("exp_avg_sq", exp_avg_sq, true), f("max_exp_avg_sq", max_exp_avg_sq, false);
  }
};

//   optim::Adam optimizer(net->parameters(), {.lr = 1e-3, .betas = {0.9, 0.98}});
class Adam final : public GroupedOptimizer<AdamOptions, AdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;
  bool takes_grad_factor() const override { return true; }
  bool can_step_unknown() const override;

 protected:
  void do_step() override;
};

class AdamW final : public GroupedOptimizer<AdamWOptions, AdamState> {
 public:
  using GroupedOptimizer::GroupedOptimizer;
  bool takes_grad_factor() const override { return true; }
  bool can_step_unknown() const override;

 protected:
  void do_step() override;
};

}  // namespace brigade::optim
