// Optimizers on the device, compared with the CPU: steps, checkpoints that move between devices, clipping.
#include "agreement.h"

#include <brigade/autograd/functional.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <functional>
#include <limits>
#include <memory>

namespace brigade::test::optim_test {
namespace {

using OptimizerPtr = std::unique_ptr<optim::Optimizer>;

struct Kind {
  std::string name;
  std::function<OptimizerPtr(const std::vector<Tensor>&)> make;
};

template <class O, class Options>
Kind kind(const std::string& name, const Options& options) {
  return {name, [=](const std::vector<Tensor>& parameters) -> OptimizerPtr {
            return std::make_unique<O>(parameters, options);
          }};
}

std::vector<Kind> kinds() {
  using namespace optim;
  return {
      kind<SGD>("SGD", SGDOptions{.lr = 0.05}),
      kind<SGD>("SGD momentum", SGDOptions{.lr = 0.05, .momentum = 0.9, .dampening = 0.3, .maximize = true}),
      kind<SGD>("SGD Nesterov", SGDOptions{.lr = 0.05, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
      kind<Adam>("Adam", AdamOptions{.lr = 0.02}),
      kind<Adam>("Adam amsgrad", AdamOptions{.lr = 0.02, .weight_decay = 0.1, .amsgrad = true, .maximize = true}),
      kind<AdamW>("AdamW", AdamWOptions{.lr = 0.02, .betas = {0.8, 0.95}, .eps = 1e-6}),
      kind<RMSprop>("RMSprop", RMSpropOptions{.lr = 0.01, .eps = 1e-3, .weight_decay = 0.1}),
      kind<RMSprop>("RMSprop centered",
                    RMSpropOptions{.lr = 0.01, .alpha = 0.6, .eps = 1e-2, .momentum = 0.9, .centered = true}),
      kind<Adagrad>("Adagrad", AdagradOptions{.lr = 0.02, .lr_decay = 0.1, .initial_accumulator_value = 0.5}),
      kind<Adadelta>("Adadelta", AdadeltaOptions{.lr = 0.5, .eps = 1e-3, .maximize = true}),
      kind<Lion>("Lion", LionOptions{.lr = 0.01, .weight_decay = 0.1}),
      kind<RAdam>("RAdam", RAdamOptions{.lr = 0.02, .betas = {0.8, 0.7}, .eps = 1e-3}),
      kind<NAdam>("NAdam", NAdamOptions{.lr = 0.02, .eps = 1e-3, .weight_decay = 0.1, .decoupled_weight_decay = true}),
      kind<AdamW>("AdamW amsgrad", AdamWOptions{.lr = 0.02, .weight_decay = 0.1, .amsgrad = true, .maximize = true}),
  };
}

// A scalar, less than a 16-byte vector, an odd size, and more than a block.
std::vector<Tensor> parameters_on(Device device, DType dtype) {
  std::vector<Tensor> parameters;
  uint64_t seed = 1;
  for (const Shape& sizes : {Shape{}, Shape{3}, Shape{5, 7}, Shape{1300}})
    parameters.push_back(leaf_like(numbers(sizes, kFloat64, seed++).requires_grad_(), dtype, device));
  return parameters;
}

// Trains a small network; its batches do not depend on the device.
struct Training {
  Device device;
  nn::Sequential net{nullptr};
  OptimizerPtr optimizer;

  Training(const Kind& kind, Device where, uint64_t seed) : device(where) {
    manual_seed(seed);
    net = nn::Sequential(nn::Linear(6, 8), nn::BatchNorm1d(8), nn::GELU(), nn::Linear(8, 3));
    net->to(device);
    optimizer = kind.make(net->parameters());
  }
  std::vector<double> losses(int first, int end) const {
    std::vector<double> result;
    for (int step = first; step < end; ++step) {
      const Tensor x = numbers({7, 6}, kFloat32, static_cast<uint64_t>(step)).to(device);
      const Tensor classes = tensor<int64_t>({0, 1, 2, 0, 1, 2, step % 3}).to(device);
      optimizer->zero_grad();
      const Tensor loss = cross_entropy(net(x), classes);
      loss.backward();
      optimizer->step();
      result.push_back(loss.item());
    }
    return result;
  }
};

}  // namespace

TEST_CASE("five steps of every optimizer move parameters and state on the device as on the CPU") {
  for (const Kind& each : kinds()) {
    CAPTURE(each.name);
    for (const DType dtype : kFloatingDTypes) {
      const std::string in = name(dtype);
      CAPTURE(in);
      const std::vector<Tensor> here = parameters_on(Device(), dtype);
      const std::vector<Tensor> there = parameters_on(kDevice, dtype);
      const OptimizerPtr expected = each.make(here);
      const OptimizerPtr found = each.make(there);
      for (int step = 1; step <= 5; ++step) {
        CAPTURE(step);
        for (size_t i = 0; i < here.size(); ++i) {
          const Tensor grad = numbers(here[i].sizes(), dtype, static_cast<uint64_t>(step) * 10 + i);
          here[i].set_grad(grad);
          there[i].set_grad(grad.to(kDevice));
        }
        expected->step();
        found->step();
        // One rounding per step so far.
        for (size_t i = 0; i < here.size(); ++i)
          CHECK(disagreement(there[i].detach(), here[i].detach(), dtype, step) <= 1);
      }
      const optim::OptimizerState state = found->state_dict();
      const optim::OptimizerState wanted = expected->state_dict();
      CHECK(state.numbers == wanted.numbers);
      REQUIRE(state.tensors.size() == wanted.tensors.size());
      for (size_t i = 0; i < state.tensors.size(); ++i) {
        CAPTURE(wanted.tensors[i].first);
        CHECK(state.tensors[i].first == wanted.tensors[i].first);
        CHECK(state.tensors[i].second.device() == kDevice);
        CHECK(disagreement(state.tensors[i].second, wanted.tensors[i].second, dtype, 5) <= 1);
      }
    }
  }
}

TEST_CASE("a checkpoint of one device goes on on another, with the same losses") {
  for (const Kind& each : kinds()) {
    CAPTURE(each.name);
    const std::vector<double> expected = Training(each, Device(), 3).losses(0, 6);
    for (const auto& [from, to] :
         {std::pair(Device(), kDevice), std::pair(kDevice, Device()), std::pair(kDevice, kDevice)}) {
      const std::string way = to_string(from) + " to " + to_string(to);
      CAPTURE(way);
      const Training before(each, from, 3);
      std::vector<double> found = before.losses(0, 3);
      const Training after(each, to, 4);
      after.net->load_state_dict(before.net->state_dict());
      after.optimizer->load_state_dict(before.optimizer->state_dict());
      for (const auto& [name, tensor] : after.optimizer->state_dict().tensors) {
        CAPTURE(name);
        CHECK(tensor.device() == to);
      }
      // The checkpoint is a copy: its source can train on independently.
      const std::vector<double> rest = after.losses(3, 6);
      CHECK(before.losses(3, 4).front() == doctest::Approx(rest.front()).epsilon(1e-5));
      found.insert(found.end(), rest.begin(), rest.end());
      REQUIRE(found.size() == expected.size());
      for (size_t i = 0; i < expected.size(); ++i)
        CHECK(found[i] == doctest::Approx(expected[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("gradients are forgotten or filled with zeros where they are") {
  for (const bool set_to_none : {true, false}) {
    const std::vector<Tensor> parameters = parameters_on(kDevice, kFloat32);
    optim::SGD optimizer(parameters, {.lr = 0.1});
    for (const Tensor& parameter : parameters)
      parameter.set_grad(ones_like(parameter.detach()));
    optimizer.zero_grad(set_to_none);
    for (const Tensor& parameter : parameters) {
      CHECK(parameter.grad().defined() == !set_to_none);
      if (!set_to_none) CHECK(difference(parameter.grad(), zeros(parameter.sizes())) == 0);
    }
  }
}

TEST_CASE("a module that moves away from its optimizer's state is refused, and loading the state mends it") {
  Training training(kinds()[1], Device(), 3);
  const std::vector<double> expected = Training(kinds()[1], Device(), 3).losses(0, 4);
  training.losses(0, 2);
  training.net->to(kDevice);
  training.device = kDevice;
  CHECK_THROWS_WITH_AS(training.losses(2, 3),
                       doctest::Contains("momentum buffer must be contiguous and like the parameter"), ShapeError);
  training.optimizer->load_state_dict(training.optimizer->state_dict());
  CHECK(training.losses(2, 3).front() > 0);
}

TEST_CASE("clipping by norm: the total and the gradients are the CPU's") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double norm_type : {1.0, 2.0, infinity}) {
    CAPTURE(norm_type);
    for (const double max_norm : {0.5, 1e9}) {
      CAPTURE(max_norm);
      for (const DType dtype : kFloatingDTypes) {
        const std::string in = name(dtype);
        CAPTURE(in);
        const auto clipped = [&](Device device, double* total) {
          const std::vector<Tensor> parameters = parameters_on(device, dtype);
          for (size_t i = 1; i < parameters.size(); ++i)  // the first has no gradient
            parameters[i].set_grad(numbers(parameters[i].sizes(), dtype, 20 + i).to(device));
          *total = optim::clip_grad_norm_(parameters, max_norm, {.norm_type = norm_type});
          return parameters;
        };
        double here = 0, there = 0;
        const std::vector<Tensor> expected = clipped(Device(), &here);
        const std::vector<Tensor> found = clipped(kDevice, &there);
        // Terms of half types are accumulated in float.
        CHECK(there == doctest::Approx(here).epsilon(dtype == kFloat64 ? 1e-13 : 1e-5));
        CHECK_FALSE(found.front().grad().defined());
        for (size_t i = 1; i < found.size(); ++i)
          CHECK(disagreement(found[i].grad(), expected[i].grad(), dtype) <= 1);
      }
    }
  }
  // Parameters on several devices share one norm.
  const Tensor a = ones({4}).requires_grad_();
  const Tensor b = ones({5}).to(kDevice).detach().requires_grad_();
  a.set_grad(ones({4}));
  b.set_grad(ones({5}).to(kDevice));
  CHECK(optim::clip_grad_norm_({a, b}, 1) == doctest::Approx(3));
  CHECK(b.grad().to_vector<float>()[4] == doctest::Approx(1.0 / 3));
  b.set_grad(full({5}, infinity).to(kDevice));
  CHECK_THROWS_WITH_AS(optim::clip_grad_norm_({a, b}, 1, {.error_if_nonfinite = true}),
                       doctest::Contains("is non-finite"), ValueError);
}

}  // namespace brigade::test::optim_test
