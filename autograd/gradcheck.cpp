// Moves each element up and down by a step; second derivatives are checked on weighted gradients.
#include <brigade/autograd/gradcheck.h>

#include <brigade/autograd/functional.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <cmath>

namespace brigade::autograd {
namespace {

// The worst of the pairs seen so far.
class Worst {
 public:
  void see(size_t input, int64_t element, double from_backward, double expected) {
    double error = std::abs(from_backward - expected) / std::max({1.0, std::abs(from_backward), std::abs(expected)});
    if (std::isnan(error)) error = INFINITY;
    if (any_ && error <= result_.worst) return;
    any_ = true;
    result_.worst = error;
    result_.input = input;
    result_.element = element;
    result_.from_backward = from_backward;
    result_.from_difference = expected;
  }
  bool empty() const { return !any_; }
  // `expected` describes the second number of a pair in the report.
  GradcheckResult result(double tolerance, const std::string& expected) {
    result_.ok = any_ && result_.worst < tolerance;
    result_.report = any_ ? "worst relative error " + std::to_string(result_.worst) + " at element " +
                                std::to_string(result_.element) + " of input " + std::to_string(result_.input) +
                                ": backward " + std::to_string(result_.from_backward) + ", " + expected + " " +
                                std::to_string(result_.from_difference)
                          : "no input requires grad";
    return result_;
  }

 private:
  GradcheckResult result_;
  bool any_ = false;
};

}  // namespace

GradcheckResult gradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                          const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad() && inputs[i].dtype() != kFloat64) {
      throw DTypeError("gradcheck: input {} must be float64, got {}", i, describe(inputs[i]));
    }
    if (inputs[i].requires_grad()) inputs[i].set_grad(Tensor());
  }
  Tensor weights;
  const auto scalar = [&] {
    const Tensor result = function(inputs);
    if (!weights.defined()) {
      RandomGenerator generator(options.seed);
      weights = randn(result.sizes(), {kFloat64}, &generator).to(result.device());
    }
    return sum(mul(result, weights));
  };
  scalar().backward();

  Worst worst;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const Tensor grad = inputs[i].grad();
    const NoGradGuard no_grad;
    for (int64_t element = 0; element < inputs[i].numel(); ++element) {
      // The element's offset, for any strides.
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
      worst.see(i, element, analytic, difference);
    }
  }
  return worst.result(options.tolerance, "difference");
}

GradcheckResult gradgradcheck(const std::function<Tensor(const std::vector<Tensor>&)>& function,
                              const std::vector<Tensor>& inputs, const GradcheckOptions& options) {
  const Tensor result = function(inputs);
  RandomGenerator generator(options.seed + 1);
  std::vector<Tensor> all = inputs;
  all.push_back(randn(result.sizes(), {kFloat64}, &generator).to(result.device()).requires_grad_());
  std::vector<Tensor> weights;
  for (const Tensor& input : inputs)
    weights.push_back(input.requires_grad() ? randn(input.sizes(), {kFloat64}, &generator).to(input.device())
                                            : Tensor());
  const auto gradients_of = [&](const std::vector<Tensor>& now, bool create_graph) {
    std::vector<Tensor> wanted;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (inputs[i].requires_grad()) wanted.push_back(now[i]);
    }
    const Tensor outputs[] = {function(std::vector<Tensor>(now.begin(), now.end() - 1))};
    return autograd::grad(outputs, wanted,
                          {.grad_outputs = {now.back()}, .create_graph = create_graph, .materialize_grads = true});
  };

  // Operations may take another code path when their backward is recorded; it must give the same gradient.
  const std::vector<Tensor> plain = gradients_of(all, false), recorded = gradients_of(all, true);
  Worst first;
  size_t place = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const std::vector<double> with_graph = brigade::detail::elements_of<double>(recorded[place]);
    const std::vector<double> without = brigade::detail::elements_of<double>(plain[place]);
    for (size_t k = 0; k < without.size(); ++k)
      first.see(i, static_cast<int64_t>(k), with_graph[k], without[k]);
    ++place;
  }
  const GradcheckResult same = first.result(options.tolerance, "without create_graph");
  if (!first.empty() && !same.ok) return same;

  const auto weighted_gradients = [&](const std::vector<Tensor>& now) {
    const EnableGradGuard recording;
    const std::vector<Tensor> gradients = gradients_of(now, true);
    Tensor total;
    size_t next = 0;
    for (const Tensor& weight : weights) {
      if (!weight.defined()) continue;
      const Tensor part = sum(mul(gradients[next++], weight));
      total = total.defined() ? add(total, part) : part;
    }
    // Keeps the result in the graph even if no gradient depends on anything.
    return add(total, mul(sum(all.back()), 0.0));
  };
  return gradcheck(weighted_gradients, all, options);
}

}  // namespace brigade::autograd
