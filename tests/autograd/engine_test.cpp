#include <brigade/autograd/detail/findings.h>
#include <brigade/autograd/engine_observer.h>
#include <brigade/autograd/functional.h>
#include <brigade/autograd/listener.h>
#include <brigade/autograd/meta.h>
#include <brigade/autograd/record.h>
#include <brigade/autograd/tape.h>
#include <brigade/core/allocator.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <thread>
#include <utility>

namespace brigade::test::engine_test {
using doctest::Contains;
using Events = std::vector<std::string>;

namespace {

Tensor leaf(std::vector<float> values) {
  const auto n = static_cast<int64_t>(values.size());
  return tensor(values, {n}).requires_grad_();
}

std::vector<float> grad_of(const Tensor& x) { return x.grad().to_vector<float>(); }

// An operation whose backward sets no gradient.
struct SilentNode final : autograd::Node {
  void backward(autograd::BackwardContext&) override {}
};
Tensor silent(const Tensor& x) {
  Tensor y = x.detach().clone();
  autograd::record<SilentNode>({.op = "silent", .where = SourceLocation::current()}, {x}, y);
  return y;
}

}  // namespace

TEST_CASE("gradients add up over uses and over backwards") {
  const Tensor x = leaf({1, 2});
  (x * x + x).sum().backward();
  CHECK(grad_of(x) == std::vector<float>{3, 5});
  (x * 2.0).sum().backward();
  CHECK(grad_of(x) == std::vector<float>{5, 7});
}

TEST_CASE("operations that other threads have recorded come in their turn") {
  // This thread has recorded many nodes, a new thread none; nodes of the new thread still rank as newer.
  const Tensor a = leaf({2});
  Tensor before = a;
  for (int i = 0; i < 40; ++i)
    before = before + 1.0;
  Tensor middle;
  std::thread([&] { middle = before * before; }).join();
  (middle * a).sum().backward();
  CHECK(grad_of(a) == std::vector<float>{42 * 42 + 2 * 42 * 2});

  // The leaf's gradient is complete only after the last of several branches that were recorded concurrently.
  const Tensor b = leaf({3});
  int completed = 0;
  b.register_hook([&](const Tensor&) {
    ++completed;
    return Tensor();
  });
  Tensor branches[4];
  std::vector<std::thread> threads;
  for (Tensor& branch : branches)
    threads.emplace_back([&branch, &b] { branch = b * b; });
  for (std::thread& thread : threads)
    thread.join();
  (branches[0] + branches[1] + branches[2] + branches[3]).sum().backward();
  CHECK(grad_of(b) == std::vector<float>{24});
  CHECK(completed == 1);
}

TEST_CASE("a gradient that is kept is not changed by later backwards through the same handle") {
  const Tensor x = leaf({1});
  const Tensor y = x * 3.0;
  const Tensor seed = tensor<float>({2});
  y.backward({.gradient = seed});
  CHECK(grad_of(x) == std::vector<float>{6});
  // add passes its gradient on unchanged: the leaf must own a copy of the seed.
  const Tensor z = leaf({1});
  (z + 0.0).backward({.gradient = seed});
  (z + 0.0).backward({.gradient = seed});
  CHECK(grad_of(z) == std::vector<float>{4});
  CHECK(seed.to_vector<float>() == std::vector<float>{2});
}

TEST_CASE("detach and no_grad stop gradients") {
  const Tensor x = leaf({2});
  const Tensor y = x * x.detach();
  CHECK_FALSE(x.detach().requires_grad());
  y.sum().backward();
  CHECK(grad_of(x) == std::vector<float>{2});
  {
    const NoGradGuard no_grad;
    CHECK_FALSE((x * 2.0).requires_grad());
    const EnableGradGuard enabled;
    CHECK((x * 2.0).requires_grad());
  }
  CHECK((x * 2.0).requires_grad());
}

TEST_CASE("a chain of a million operations goes backward and is freed without deep recursion") {
  const Tensor x = leaf({1});
  {
    Tensor y = x;
    for (int i = 0; i < 1'000'000; ++i)
      y = y + 0.0;
    y.backward();
  }
  CHECK(grad_of(x) == std::vector<float>{1});
  // Another chain of this length, freed without a backward.
  Tensor y = x;
  for (int i = 0; i < 1'000'000; ++i)
    y = y * 1.0;
  y = Tensor();
  CHECK(x.use_count() == 1);
}

TEST_CASE("a graph with branches is freed as a whole, though no backward has run over it") {
  const Tensor x = leaf({1, 2});
  const uint64_t before = cpu_allocator_stats().bytes_in_use;
  {
    Tensor y = x * 2.0;
    for (int i = 0; i < 20; ++i)
      y = (y * x) + (y * 3.0) * (y * y);
    CHECK(cpu_allocator_stats().bytes_in_use > before);
  }
  CHECK(cpu_allocator_stats().bytes_in_use == before);
}

TEST_CASE("a backward that hands over nothing sends nothing on") {
  const Tensor x = leaf({1, 2});
  (silent(x) * 3.0).sum().backward();
  CHECK(!x.grad().defined());
  (silent(x * 2.0) * x).sum().backward();
  CHECK(grad_of(x) == std::vector<float>{2, 4});
  autograd::Tape::enable();
  for (int i = 0; i < 2; ++i)
    silent(x).sum().backward();
  const auto& stopped = autograd::detail::stopped_gradients().all;
  CHECK((stopped.size() == 1 && stopped.front().leaf == x.id()));  // of the latest backward
  autograd::Tape::disable();
}

TEST_CASE("a backward has an observer for each thing that needs one, and otherwise none") {
  const auto count = [](const autograd::ObservedRun& run) {
    autograd::EngineObservers observers;
    autograd::attach_observers(observers, run);
    return observers.size();
  };
  // On a thread without retained graphs.
  std::thread([&] {
    CHECK(count({}) == 0);
    CHECK(count({.retains_graph = true}) == 1);
    autograd::begin_scaler();
    CHECK(count({}) == 1);
    autograd::end_scaler();
    autograd::Tape::enable();
    CHECK(count({}) == 2);
    autograd::Tape::disable();
    const autograd::DetectAnomalyGuard guard;
    CHECK(count({.is_captured = true}) == 1);
  }).join();
}

TEST_CASE("a second backward through a freed graph names the operation and both backwards") {
  const Tensor x = leaf({1, 2});
  const Tensor y = exp(x).sum();
  y.backward();
  CHECK_THROWS_WITH(y.backward(), Contains("Trying to backward through the graph a second time"));
  CHECK_THROWS_WITH(y.backward(), Contains("retain_graph=True"));
  CHECK_THROWS_WITH(y.backward(), Contains("'exp' recorded at autograd/engine_test.cpp:"));
  // retain_graph allows a second backward, and so does a graph that saved nothing.
  const Tensor z = exp(x).sum();
  z.backward({.retain_graph = true});
  CHECK_NOTHROW(z.backward());
  const Tensor w = (x + x).sum();
  w.backward();
  CHECK_NOTHROW(w.backward());
}

TEST_CASE("unusable roots are refused with PyTorch's phrases") {
  const Tensor x = leaf({1, 2});
  CHECK_THROWS_WITH(tensor<float>({1}).backward(),
                    Contains("element 0 of tensors does not require grad and does not have a grad_fn"));
  CHECK_THROWS_WITH((x * 2.0).backward(), Contains("grad can be implicitly created only for scalar outputs"));
}

TEST_CASE("in-place writes: what is allowed, and what they do to gradients") {
  const Tensor x = leaf({1, 2});
  {
    const NoGradGuard no_grad;
    CHECK_NOTHROW(x.mul_(2.0));
  }
  CHECK(x.to_vector<float>() == std::vector<float>{2, 4});

  Tensor y = x * 3.0;
  y += x;
  y.sum().backward();
  CHECK(grad_of(x) == std::vector<float>{4, 4});
}

TEST_CASE("a saved tensor that was written to is an error which names the operation and both versions") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 1.0;
  const Tensor z = exp(y);
  z.mul_(2.0);
  const Tensor loss = z.sum();
  CHECK_THROWS_WITH(loss.backward(), Contains("one of the variables needed for gradient computation has been modified "
                                              "by an inplace operation: [float32 [2]]"));
  CHECK_THROWS_WITH(loss.backward(),
                    Contains("which is output 0 of ExpBackward, is at version 1; expected version 0 instead"));
  CHECK_THROWS_WITH(loss.backward(), Contains("recorded at autograd/engine_test.cpp:"));
}

TEST_CASE("hooks see and replace gradients of leaves and of results") {
  const Tensor x = leaf({1, 2});
  const Tensor y = x * 2.0;
  y.retain_grad();
  std::vector<float> seen;
  const uint64_t on_result = y.register_hook([&](const Tensor& g) {
    seen = g.to_vector<float>();
    return g * 10.0;
  });
  const uint64_t on_leaf = x.register_hook([](const Tensor& g) { return g + 1.0; });
  (y * 3.0).sum().backward();
  CHECK(seen == std::vector<float>{3, 3});
  CHECK(grad_of(y) == std::vector<float>{30, 30});
  CHECK(grad_of(x) == std::vector<float>{61, 61});
  x.remove_hook(on_leaf);
  y.remove_hook(on_result);
  x.set_grad(Tensor());
  (x * 2.0).sum().backward();
  CHECK(grad_of(x) == std::vector<float>{2, 2});
  CHECK_THROWS_AS(tensor<float>({1}).register_hook([](const Tensor&) { return Tensor(); }), AutogradError);
}

TEST_CASE("requires_grad is for leaves of floating dtypes") {
  const Tensor x = leaf({1});
  CHECK_THROWS_WITH((x * 2.0).requires_grad_(false),
                    Contains("you can only change requires_grad flags of leaf variables."));
  CHECK_THROWS_AS(tensor<int64_t>({1}).requires_grad_(), DTypeError);
  CHECK_THROWS_AS(x.set_grad(tensor<float>({1, 2})), ShapeError);
}

TEST_CASE("a leaf that was frozen after its use gathers no gradient") {
  const Tensor x = leaf({1, 2}), w = leaf({3, 4});
  const Tensor y = (x * w).sum();
  w.requires_grad_(false);
  y.backward({.retain_graph = true});
  CHECK(!w.grad().defined());
  CHECK(grad_of(x) == std::vector<float>{3, 4});
  w.requires_grad_();
  y.backward();
  CHECK(grad_of(w) == std::vector<float>{1, 2});
  CHECK(grad_of(x) == std::vector<float>{6, 8});
}

TEST_CASE("a frozen leaf gathers nothing where its gradient has a home, into which operations write by themselves") {
  const Tensor x = ones({4, 3}), weight = ones({2, 3}).requires_grad_(), bias = zeros({2}).requires_grad_();
  const Tensor weight_home = zeros({2, 3}), bias_home = zeros({2});
  autograd::set_grad_target(weight, weight_home);
  autograd::set_grad_target(bias, bias_home);
  const Tensor y = linear(x, weight, bias).sum();
  bias.requires_grad_(false);
  y.backward();
  CHECK(!bias.grad().defined());
  CHECK(bias_home.to_vector<float>() == std::vector<float>{0, 0});
  CHECK(weight_home.to_vector<float>() == std::vector<float>(6, 4));
}

namespace {

struct Recorder final : autograd::Listener {
  Events events;
  void on_plan(const autograd::Plan& plan) override {
    std::string text = "plan:";
    plan.for_each_observed(this, [&](uint32_t tag) { text += " " + std::to_string(tag); });
    events.push_back(text);
  }
  void on_grad_ready(uint32_t tag, bool defined) override {
    events.push_back("ready " + std::to_string(tag) + (defined ? "" : " without gradient"));
  }
  void on_finish(const autograd::Plan&) override { events.push_back("finish"); }
  void on_refused() noexcept override { events.push_back("refused"); }
  void on_error(const autograd::Plan* plan, std::exception_ptr) noexcept override {
    events.push_back(plan ? "error" : "error before the plan");
  }
};

}  // namespace

TEST_CASE("a listener hears the exact plan first, then each gradient as it becomes complete") {
  const Tensor a = leaf({1});
  const Tensor b = leaf({2});
  const Tensor unused = leaf({3});
  auto recorder = std::make_shared<Recorder>();
  const auto heard = [&] { return std::exchange(recorder->events, {}); };
  autograd::observe(a, *recorder, 0);
  autograd::observe(b, *recorder, 1);
  autograd::observe(unused, *recorder, 2);
  autograd::add_listener(recorder);
  // b is used last, so its gradient is complete first.
  ((a * 2.0) * b).sum().backward();
  CHECK(heard() == Events{"plan: 1 0", "ready 1", "ready 0", "finish"});

  // A backward that reaches no observed leaf is reported on this thread; on another thread, only a backward that
  // reaches one is.
  leaf({1}).sum().backward();
  std::thread([&] { leaf({1}).sum().backward(); }).join();
  CHECK(heard() == Events{"plan:", "finish"});
  std::thread([&] { (a * 1.0).sum().backward(); }).join();
  CHECK(heard() == Events{"plan: 0", "ready 0", "finish"});
  const Tensor freed = exp(leaf({1})).sum();
  freed.backward();
  heard();
  std::thread([&] { CHECK_THROWS(autograd::backward({freed, a.sum()}, {})); }).join();
  CHECK(heard() == Events{"refused", "error before the plan"});

  CHECK_THROWS(tensor<float>({1}).backward());
  const Tensor failing = a * 2.0;
  failing.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("hook failed"); });
  CHECK_THROWS_WITH(failing.sum().backward(), "hook failed");
  CHECK(heard() == Events{"refused", "error before the plan", "plan: 0", "error"});
  for (const Tensor& each : {a, b, unused})
    autograd::stop_observing(each, *recorder);
}

TEST_CASE("a gradient is born in its target, and joins what is there") {
  const Tensor weight = tensor(std::vector<float>{1, 2, 3, 4}, {2, 2}).requires_grad_();
  const Tensor home = empty({2, 2});
  autograd::set_grad_target(weight, home);
  const Tensor x = tensor(std::vector<float>{1, 1}, {1, 2});
  autograd::Tape::enable();
  linear(x, weight).sum().backward();
  CHECK(autograd::detail::stopped_gradients().all.empty());
  autograd::Tape::disable();
  CHECK(weight.grad().is_same(home));
  CHECK(home.to_vector<float>() == std::vector<float>{1, 1, 1, 1});
  linear(x, weight).sum().backward();
  CHECK(home.to_vector<float>() == std::vector<float>{2, 2, 2, 2});
  // A gradient set with set_grad() moves into the target.
  weight.set_grad(tensor(std::vector<float>{5, 5, 5, 5}, {2, 2}));
  (weight * 1.0).sum().backward();
  CHECK(weight.grad().is_same(home));
  CHECK(home.to_vector<float>() == std::vector<float>{6, 6, 6, 6});
  // The same leaf as both operands of one product.
  weight.set_grad(Tensor());
  matmul(weight, weight).sum().backward();
  CHECK(home.to_vector<float>() == std::vector<float>{7, 11, 9, 13});
}

TEST_CASE("the graph may be used again after a backward that failed") {
  const Tensor x = leaf({1});
  const Tensor y = exp(x);
  bool fail = true;
  y.register_hook([&](const Tensor&) -> Tensor {
    if (fail) throw std::runtime_error("once");
    return Tensor();
  });
  const Tensor root = y.sum();
  CHECK_THROWS_WITH(root.backward(), "once");
  fail = false;
  CHECK_NOTHROW(root.backward());
  CHECK(grad_of(x)[0] == doctest::Approx(2.7182817));
}

}  // namespace brigade::test::engine_test
