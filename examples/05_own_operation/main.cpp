// A custom operation: a forward, and a backward that computes its derivative. The operation is squareplus, a smooth
// relu: y = (x + sqrt(x x + b)) / 2, so dy/dx = (1 + x / sqrt(x x + b)) / 2. gradcheck compares backward with central
// differences, gradgradcheck does the same for second derivatives, and both must detect a wrong backward.
#include <brigade/brigade.h>

#include <any>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace brigade;

struct Squareplus : autograd::Function<Squareplus> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, double b) {
    ctx.save_for_backward({x});  // tensors that backward needs
    ctx.saved_data["b"] = b;     // anything else
    return (x + sqrt(x * x + b)) * 0.5;
  }
  // One gradient per result comes in; one per argument of forward goes out, undefined for arguments that are not
  // tensors. backward uses differentiable operations, so that it can be differentiated again.
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx.get_saved_variables()[0];
    const double b = std::any_cast<double>(ctx.saved_data.at("b"));
    return {grads[0] * (x / sqrt(x * x + b) + 1.0) * 0.5, Tensor()};
  }
};

// The same forward, with a backward that forgets the factor 1/2.
struct WrongSquareplus : autograd::Function<WrongSquareplus> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x, double b) {
    return Squareplus::forward(ctx, x, b);
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    return {Squareplus::backward(ctx, grads)[0] * 2.0, Tensor()};
  }
};

int main() {
  manual_seed(0);
  const std::vector<Tensor> inputs = {randn({3, 4}, kFloat64).requires_grad_()};
  const auto squareplus = [](const std::vector<Tensor>& given) { return Squareplus::apply(given[0], 1.0); };
  const auto wrong = [](const std::vector<Tensor>& given) { return WrongSquareplus::apply(given[0], 1.0); };

  const autograd::GradcheckResult first = autograd::gradcheck(squareplus, inputs);
  const autograd::GradcheckResult second = autograd::gradgradcheck(squareplus, inputs);
  const autograd::GradcheckResult caught = autograd::gradcheck(wrong, inputs);
  std::printf("derivative:         %s, largest relative error %.1e\n", first.ok ? "right" : "WRONG", first.worst);
  std::printf("second derivative:  %s, largest relative error %.1e\n", second.ok ? "right" : "WRONG", second.worst);
  std::printf("half forgotten:     %s, largest relative error %.1e\n", caught.ok ? "NOT NOTICED" : "noticed",
              caught.worst);

  // It trains like any other: squareplus(1.875) is 2.
  const Tensor weight = tensor(std::vector<float>{0}, {1}).requires_grad_();
  optim::SGD optimizer({weight}, {.lr = 0.5});
  for (int step = 0; step < 100; ++step) {
    optimizer.zero_grad();
    mse_loss(Squareplus::apply(weight, 1.0), full({1}, 2.0)).backward();
    optimizer.step();
  }
  const double solution = weight.item();
  std::printf("squareplus(x) = 2 at x = %.4f\n", solution);
  return first.ok && second.ok && !caught.ok && std::abs(solution - 1.875) < 1e-4 ? 0 : 1;
}
