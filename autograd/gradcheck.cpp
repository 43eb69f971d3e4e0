#include <brigade/autograd/gradcheck.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <cmath>

namespace brigade::autograd {

GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad() && inputs[i].dtype() != kFloat64) {
      throw DTypeError("gradcheck: input " + std::to_string(i) + " must be float64, got " + describe(inputs[i]));
    }
    if (inputs[i].requires_grad()) inputs[i].set_grad(Tensor());
  }
  Tensor weights;
  const auto scalar = [&] {
    const Tensor result = function(inputs);
    if (!weights.defined()) {
      Generator generator(options.seed);
      weights = randn(result.sizes(), {kFloat64}, &generator).to(result.device());
    }
    return sum(mul(result, weights));
  };
  scalar().backward();

  GradcheckResult worst;
  worst.ok = true;
  bool any = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const Tensor grad = inputs[i].grad();
    const NoGradGuard no_grad;
    for (int64_t element = 0; element < inputs[i].numel(); ++element) {
      // The element's place, whatever the strides.
      int64_t offset = 0;
      int64_t rest = element;
      for (int d = inputs[i].dim() - 1; d >= 0; --d) {
        offset += rest % inputs[i].sizes()[d] * inputs[i].strides()[d];
        rest /= inputs[i].sizes()[d];
      }
      const Tensor place = view::as_strided(inputs[i], {}, {}, inputs[i].storage_offset() + offset);
      const double value = brigade::detail::element_as_double(place, 0);
      kernels::fill(place, value + options.step);
      const double above = scalar().item();
      kernels::fill(place, value - options.step);
      const double below = scalar().item();
      kernels::fill(place, value);
      const double difference = (above - below) / (2 * options.step);
      const double analytic = grad.defined() ? brigade::detail::element_as_double(grad, element) : 0.0;
      const double error = std::abs(analytic - difference) / std::max({1.0, std::abs(analytic), std::abs(difference)});
      if (!any || !(error <= worst.worst)) {
        worst.worst = error;
        worst.input = i;
        worst.element = element;
        worst.from_backward = analytic;
        worst.from_difference = difference;
      }
      any = true;
    }
  }
  worst.ok = any && worst.worst < options.tolerance;
  worst.report = any ? "worst relative error " + std::to_string(worst.worst) + " at element " +
                           std::to_string(worst.element) + " of input " + std::to_string(worst.input) + ": backward " +
                           std::to_string(worst.from_backward) + ", difference " + std::to_string(worst.from_difference)
                     : "no input requires grad";
  return worst;
}

GradcheckResult gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const Tensor result = function(inputs);
  Generator generator(options.seed + 1);
  std::vector<Tensor> all = inputs;
  all.push_back(randn(result.sizes(), {kFloat64}, &generator).to(result.device()).requires_grad_());
  std::vector<Tensor> weights;
  for (const Tensor& input : inputs)
    weights.push_back(input.requires_grad() ? randn(input.sizes(), {kFloat64}, &generator).to(input.device())
                                            : Tensor());
  const auto weighted_gradients = [&](const std::vector<Tensor>& now) {
    const EnableGradGuard recording;
    std::vector<Tensor> wanted;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) wanted.push_back(now[i]);
    }
    const Tensor outputs[] = {function(std::vector<Tensor>(now.begin(), now.end() - 1))};
    const std::vector<Tensor> gradients = autograd::grad(
        outputs, wanted, {.grad_outputs = {now.back()}, .create_graph = true, .materialize_grads = true});
    Tensor total;
    size_t next = 0;
    for (const Tensor& weight : weights) {
      if (!weight.defined()) continue;
      const Tensor part = sum(mul(gradients[next++], weight));
      total = total.defined() ? add(total, part) : part;
    }
    // A gradient that does not depend on anything still has to be a result.
    return add(total, mul(sum(all.back()), 0.0));
  };
  return gradcheck(weighted_gradients, all, options);
}

}  // namespace brigade::autograd
