// Training with autocast and a scaler on the device, compared with float32 on the CPU. Three parts, for CTest.
#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <on_device.h>
#include <test_part.h>

#include <doctest/doctest.h>

#include <optional>
#include <string>

namespace brigade::test::mixed_precision_test {
using test::kDevice;

namespace {

struct Curve {
  double first = 0, last = 0;  // mean losses of 20 steps
  double scale = 0;
};

// Trains a GPT block for 500 steps on a repeating sequence.
Curve train_gpt(Device device, std::optional<DType> dtype) {
  constexpr int kSteps = 500;
  constexpr int64_t kLength = 6;
  manual_seed(1);
  nn::GPT net({.vocab_size = 8, .block_size = kLength, .n_layer = 1, .n_head = 2, .n_embd = 8});
  net->to(device);
  optim::AdamW optimizer(net->parameters(), {.lr = 1e-2});
  amp::GradScaler scaler({.enabled = dtype == kFloat16, .device = device.type});
  Curve curve;
  for (int s = 0; s < kSteps; ++s) {
    std::vector<int64_t> shown, next;
    for (int64_t i = s; i < s + 2 * kLength; ++i) {
      shown.push_back(i * i % 7);
      next.push_back((i + 1) * (i + 1) % 7);
    }
    const Tensor x = from_values(std::span<const int64_t>(shown), {2, kLength}).to(device);
    const Tensor y = from_values(std::span<const int64_t>(next), {2 * kLength}).to(device);
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(device.type, dtype, dtype.has_value());
      loss = cross_entropy(net(x).reshape({-1, 8}), y);
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    if (s < 20) curve.first += loss.detach().item() / 20;
    if (s >= kSteps - 20) curve.last += loss.detach().item() / 20;
  }
  curve.scale = scaler.get_scale();
  return curve;
}

}  // namespace

TEST_CASE("a GPT block in mixed precision on the device reaches the loss of float32 in 500 steps") {
  const Curve expected = train_gpt(kCPU, std::nullopt);
  CHECK(expected.last < 0.1 * expected.first);
  if (test::is_of_this_part(0))
    CHECK(train_gpt(kDevice, std::nullopt).last == doctest::Approx(expected.last).epsilon(0.05));
  for (const DType dtype : {kFloat16, kBFloat16}) {
    if (!test::is_of_this_part(dtype == kFloat16 ? 1 : 2)) continue;
    CAPTURE(std::string(name(dtype)));
    const Curve found = train_gpt(kDevice, dtype);
    CHECK(found.first == doctest::Approx(expected.first).epsilon(0.02));
    CHECK(found.last == doctest::Approx(expected.last).epsilon(dtype == kFloat16 ? 0.1 : 0.25));
    CHECK(found.scale <= (dtype == kFloat16 ? 65536 : 1));
    CHECK(found.scale >= (dtype == kFloat16 ? 1024 : 1));
  }
}

TEST_CASE("master weights on the device move as those on the CPU") {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    CAPTURE(std::string(name(dtype)));
    const auto train = [dtype](Device device) {
      const Tensor p = full({300}, 1.0, {dtype, device}).requires_grad_();
      optim::SGD optimizer({p}, {.lr = 1e-5, .momentum = 0.5, .master_weights = true});
      for (int s = 0; s < 50; ++s) {
        p.set_grad(full({300}, 0.5, {dtype, device}));
        optimizer.step();
        if (s == 25) p.detach().copy_(clamp(p.detach(), -1.0, 0.9990234375));
      }
      return optimizer.master_weight(p).to_vector<double>();
    };
    CHECK(train(kDevice) == train(kCPU));
  }
}

}  // namespace brigade::test::mixed_precision_test
