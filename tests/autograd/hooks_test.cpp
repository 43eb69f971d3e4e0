// Hooks of backward: saved-tensor hooks, post-accumulate hooks, anomaly mode.
#include <brigade/autograd/checkpoint.h>
#include <brigade/autograd/function.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/saved_tensor_hooks.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <cmath>

namespace brigade::test::hooks_test {
using autograd::SavedTensorHooks;
using Values = std::vector<double>;

namespace {

Tensor leaf(Values values) { return tensor(values, {static_cast<int64_t>(values.size())}).requires_grad_(); }
Values values(const Tensor& x) { return x.to_vector<double>(); }

struct NoGradient : autograd::Function<NoGradient> {
  static Tensor forward(autograd::AutogradContext&, const Tensor& x) { return x * 1.0; }
  static std::vector<Tensor> backward(autograd::AutogradContext&, const std::vector<Tensor>&) { return {Tensor()}; }
};

}  // namespace

TEST_CASE("saved tensors go through pack and unpack, inputs and results alike") {
  const Tensor x = leaf({0.5, -1});
  int packs = 0, unpacks = 0;
  Tensor y;
  {
    const SavedTensorHooks hooks(
        [&](const Tensor& tensor) -> std::any {
          ++packs;
          return values(tensor);
        },
        [&](const std::any& packed) {
          ++unpacks;
          const auto& kept = std::any_cast<const Values&>(packed);
          return tensor(kept, {static_cast<int64_t>(kept.size())});
        });
    y = exp(x * x);
  }
  CHECK(packs == 3);  // both factors, and the result of exp
  CHECK(unpacks == 0);
  sum(y).backward();
  CHECK(unpacks == 3);
  CHECK(values(x.grad())[0] == doctest::Approx(2 * 0.5 * std::exp(0.25)));
  CHECK(values(x.grad())[1] == doctest::Approx(-2 * std::exp(1.0)));
  CHECK_THROWS_WITH_AS(sum(y).backward(), doctest::Contains("a second time"), AutogradError);
  // Outside the guard nothing is packed.
  sum(exp(x)).backward();
  CHECK(packs == 3);
}

TEST_CASE("second derivatives come through packed tensors, leaves and results") {
  const auto function = [](const std::vector<Tensor>& in) {
    const SavedTensorHooks hooks([](const Tensor& t) -> std::any { return t.clone(); },
                                 [](const std::any& packed) { return std::any_cast<const Tensor&>(packed); });
    return exp(in[0] * in[1]) * in[0];
  };
  const auto result = autograd::gradgradcheck(function, {leaf({0.5, -1}), leaf({0.3, 0.2})});
  CHECK_MESSAGE(result.ok, result.report);
}

TEST_CASE("what pack returned goes with the graph, or with its backward") {
  const auto packed = std::make_shared<int>(1);
  const Tensor x = tensor<float>({1, 2}).requires_grad_();
  const auto squared = [&] {
    const autograd::SavedTensorHooks hooks(
        [&](const Tensor& tensor) { return std::make_pair(packed, tensor); },
        [](const std::any& kept) { return std::any_cast<std::pair<std::shared_ptr<int>, Tensor>>(kept).second; });
    return sum(square(x));
  };
  {
    const Tensor y = squared();
    CHECK(packed.use_count() == 2);
  }
  CHECK(packed.use_count() == 1);
  const Tensor y = squared();
  y.backward();
  CHECK(packed.use_count() == 1);
}

TEST_CASE("what pack computes has no history, and backward leaves random numbers as they were") {
  const Tensor x = leaf({0.5, -1});
  bool recorded = false;
  Tensor y;
  {
    const SavedTensorHooks hooks(
        [&](const Tensor& tensor) -> std::any {
          recorded = recorded || (x * tensor).requires_grad();
          return tensor * 0.5;
        },
        [](const std::any& packed) { return std::any_cast<const Tensor&>(packed) * 2.0; });
    y = exp(x);
  }
  CHECK_FALSE(recorded);
  sum(y).backward();
  CHECK(values(x.grad())[1] == doctest::Approx(std::exp(-1.0)));

  const Tensor z = autograd::checkpoint([](const Tensor& in) { return dropout(in, 0.5); }, x);
  randn({4});  // moves the generator on after the forward
  const auto position = default_generator().offset();
  sum(z).backward();
  CHECK(default_generator().offset() == position);
}

TEST_CASE("unpack must restore the shape, and the innermost hooks count") {
  const Tensor x = leaf({1, 2});
  const auto keep = [](const Tensor& t) -> std::any { return t.clone(); };
  Tensor y;
  {
    const SavedTensorHooks outer(keep, [](const std::any&) { return ones({3}, kFloat64); });
    y = x * x;
    const SavedTensorHooks inner(keep, [](const std::any& packed) { return std::any_cast<const Tensor&>(packed); });
    sum(x * x).backward();
    CHECK(values(x.grad()) == Values{2, 4});
  }
  CHECK_THROWS_WITH_AS(sum(y).backward(),
                       doctest::Contains("was unpacked as float64 [3], expected float64 [2]; unpack must restore"),
                       AutogradError);
  CHECK_THROWS_AS(SavedTensorHooks(nullptr, nullptr), ValueError);
}

TEST_CASE("save_on_cpu keeps results right") {
  const Tensor x = leaf({1, 2});
  const autograd::SaveOnCpu guard;
  sum(x * x * x).backward();
  CHECK(values(x.grad()) == Values{3, 12});
}

TEST_CASE("hooks after accumulation see the sum, and may step and clear") {
  const Tensor w = leaf({1, 2});
  std::vector<Values> seen;
  const uint64_t handle = w.register_post_accumulate_grad_hook([&](const Tensor& leaf) {
    seen.push_back(values(leaf.grad()));
    if (seen.size() < 3) return;
    const NoGradGuard no_grad;
    leaf.add_(leaf.grad(), -0.5);
    leaf.set_grad(Tensor());
  });
  sum(w * 2.0 + w).backward();
  sum(w).backward();
  CHECK(seen == std::vector<Values>{{3, 3}, {4, 4}});
  sum(w).backward();
  CHECK(seen.back() == Values{5, 5});
  CHECK(values(w) == Values{-1.5, -0.5});
  CHECK_FALSE(w.grad().defined());
  const Tensor outputs[] = {sum(w)};
  const Tensor inputs[] = {w};
  autograd::grad(outputs, inputs);
  CHECK(seen.size() == 3);  // nothing was accumulated
  w.remove_hook(handle);
  sum(w).backward();
  CHECK(seen.size() == 3);
  // Called once for a leaf that an operation uses twice, and not at all when no gradient arrives.
  int calls = 0;
  const Tensor v = leaf({3, 4});
  v.register_post_accumulate_grad_hook([&](const Tensor&) { ++calls; });
  sum(v * v).backward();
  CHECK(calls == 1);
  sum(NoGradient::apply(v)).backward();
  CHECK(calls == 1);
  CHECK_THROWS_WITH_AS((w * 2.0).register_post_accumulate_grad_hook([](const Tensor&) {}),
                       doctest::Contains("post accumulate grad hooks cannot be registered on non-leaf tensors"),
                       AutogradError);
}

TEST_CASE("anomaly mode names the operation that made a NaN, and where it was called") {
  const Tensor x = leaf({0, 1});
  const auto run = [&] {
    const Tensor y = sqrt(x);
    sum(y * 0.0).backward();  // 0 / 0 at the first element
  };
  CHECK_NOTHROW(run());
  CHECK(std::isnan(values(x.grad())[0]));
  CHECK_FALSE(autograd::AnomalyMode::is_enabled());
  {
    const autograd::DetectAnomalyGuard guard;
    CHECK(autograd::AnomalyMode::is_enabled());
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("Function 'SqrtBackward' returned nan values in its 0th output."),
                         AutogradError);
    CHECK_THROWS_WITH_AS(run(), doctest::Contains("'sqrt' at autograd/hooks_test.cpp:"), AutogradError);
    CHECK_THROWS_AS(autograd::grad(sum(sqrt(x) * 0.0), x), AutogradError);
    // An operation is not blamed for a NaN that came in with its gradient, and infinities are not reported.
    const Tensor z = leaf({1});
    CHECK_NOTHROW((z * 2.0).backward({.gradient = full({1}, std::nan(""), kFloat64)}));
    CHECK_NOTHROW(log(leaf({0})).backward());
  }
  CHECK_FALSE(autograd::AnomalyMode::is_enabled());
}

TEST_CASE("a hook that only looks is distinguished from one that changes the gradient") {
  const Tensor x = ones({2}).requires_grad_();
  const autograd::AutogradMeta& meta = *autograd::meta(x);
  x.register_hook([](const Tensor&) { return Tensor(); });
  x.register_hook([](const Tensor& grad) { return grad; });
  x.register_hook([](const Tensor& grad) { return grad * 2.0; });
  x.register_hook([](const Tensor& grad) {
    grad.mul_(2.0);
    return Tensor();
  });
  x.sum().backward();
  std::vector<bool> changed;
  for (const auto& hook : meta.hooks)
    changed.push_back(hook.has_changed);
  CHECK(changed == std::vector<bool>{false, false, true, true});
  CHECK(x.grad().to_vector<float>() == std::vector<float>{4, 4});
}

}  // namespace brigade::test::hooks_test
