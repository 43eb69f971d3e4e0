// brigade.h alone is enough for a program: it declares what a user needs.
#include <brigade/brigade.h>

#include <doctest/doctest.h>

#include <atomic>
#include <vector>

namespace brigade::test::umbrella_test {
struct Cube : autograd::Function<Cube> {
  static Tensor forward(autograd::AutogradContext& ctx, const Tensor& x) {
    ctx.save_for_backward({x});
    return x * x * x;
  }
  static std::vector<Tensor> backward(autograd::AutogradContext& ctx, const std::vector<Tensor>& grads) {
    const Tensor x = ctx.get_saved_variables()[0];
    return {grads[0] * x * x * 3.0};
  }
};

TEST_CASE("functions, checks of gradients, pictures, hooks, anomaly mode and ranks as threads come with brigade.h") {
  const Tensor x = tensor<double>({1, 2}).requires_grad_(), point = tensor<double>({1, 2}).requires_grad_();
  CHECK(autograd::gradcheck([](const std::vector<Tensor>& in) { return Cube::apply(in[0]); }, {point}).ok);
  const autograd::DetectAnomalyGuard anomaly;
  const Tensor y = Cube::apply(x);
  CHECK(autograd::to_dot(y).find("digraph") != std::string::npos);
  int calls = 0;
  y.register_hook([&](const Tensor& grad) {
    ++calls;
    return grad;
  });
  y.sum().backward();
  CHECK(calls == 1);
  CHECK(x.grad().to_vector<double>() == std::vector<double>{3, 12});

  std::atomic<int> total = 0;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const Tensor one = ones({1});
    group->all_reduce(one)->wait();
    total += static_cast<int>(one.item());
  });
  CHECK(total == 4);
}

}  // namespace brigade::test::umbrella_test
