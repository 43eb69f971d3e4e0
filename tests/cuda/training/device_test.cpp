// Moving tensors, gradients, modules, and optimizers between the CPU and a device.
#include "on_device.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/device_runtime.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

namespace brigade::test::device_test {

TEST_CASE("tensors move to a device and back, and are read from there") {
  for (const DType dtype : kAllDTypes) {
    CAPTURE(name(dtype));
    const Tensor x = numbers({3, 5}, dtype);
    const Tensor there = x.to(kDevice);
    CHECK(there.device() == kDevice);
    CHECK(there.is_cuda());
    CHECK(there.to_vector<double>() == x.to_vector<double>());
    CHECK(there.transpose(0, 1).to_vector<double>() == x.transpose(0, 1).to_vector<double>());
    CHECK(there.transpose(0, 1).slice(1, 1, 3).cpu().to_vector<double>() ==
          x.transpose(0, 1).slice(1, 1, 3).to_vector<double>());
    CHECK(there.select(0, 2).select(0, 4).item() == x.select(0, 2).select(0, 4).item());
    CHECK(there.to(kDevice).is_same(there));
  }
  CHECK(to_string(tensor<float>({1, 2.5}).cuda()) == "tensor([1, 2.5], cuda:0)");
  CHECK(describe(zeros({2, 3}).cuda()) == "float32 [2, 3] on cuda:0");
  CHECK(zeros({0, 3}).cuda().cpu().sizes() == Shape{0, 3});
  CHECK_THROWS_AS(zeros({2}).cuda(99), DeviceError);
  CHECK_THROWS_AS(zeros({2}).cuda() + zeros({2}), DeviceError);
  CHECK_THROWS_AS(one_hot(tensor<int64_t>({0, 5}).cuda(), 3).cpu(), IndexError);  // reported late
  CHECK(one_hot(tensor<int64_t>({2, 0}).cuda(), 3).to_vector<int64_t>() == std::vector<int64_t>{0, 0, 1, 1, 0, 0});
}

TEST_CASE("a device is chosen by name, in turns by rank") {
  CHECK(choose_device("cpu") == Device());
  CHECK(choose_device("auto") == kDevice);
  CHECK(choose_device("cuda:0") == kDevice);
  const int count = device_count(kCUDA);
  for (int rank = 0; rank < 5; ++rank)
    CHECK(choose_device("cuda", rank) == Device(kCUDA, rank % count));
  CHECK(why_no_device(kCUDA) == "");
  CHECK_THROWS_AS(choose_device("cuda:99"), DeviceError);
  CHECK_THROWS_AS(choose_device("cuda:x"), ValueError);
  CHECK_THROWS_AS(choose_device("cuda:"), ValueError);
  CHECK_THROWS_AS(choose_device("gpu"), ValueError);
}

TEST_CASE("the gradient of a move goes back to where the tensor came from") {
  const Tensor x = numbers({4, 3}, kFloat32).requires_grad_();
  const Tensor w = numbers({4, 3}, kFloat32, 2).to(kDevice).requires_grad_();
  const Tensor y = (x.to(kDevice) * w).sum();
  y.backward();
  CHECK(x.grad().device() == Device());
  CHECK(x.grad().to_vector<float>() == w.to_vector<float>());
  CHECK(w.grad().device() == kDevice);
  CHECK(w.grad().to_vector<float>() == x.to_vector<float>());
  CHECK_THROWS_AS(x.set_grad(w.grad()), DeviceError);
  const Tensor kept = zeros({4, 3}).cuda();
  const Tensor again = numbers({4, 3}, kFloat32).requires_grad_();
  kept.copy_(again);
  kept.sum().backward();
  CHECK(again.grad().to_vector<float>() == std::vector<float>(12, 1));
}

TEST_CASE("the gradient of max and min lands at the extreme") {
  const Tensor x = numbers({5, 7}, kFloat32);
  const auto gradient = [](const Tensor& leaf) {
    leaf.requires_grad_();
    (max(leaf, 1, false).values.sum() + min(leaf, 0, true).values.sum()).backward();
    return leaf.grad().to_vector<float>();
  };
  CHECK(gradient(x.cuda().detach()) == gradient(x.detach()));
}

TEST_CASE("a module moves with its parameters and buffers, and training goes on where it was") {
  const auto train = [](Device device) {
    manual_seed(3);
    nn::Sequential net(nn::Linear(6, 8), nn::GELU(), nn::Linear(8, 2));
    optim::AdamW optimizer(net->parameters(), {.lr = 0.1});
    net->to(device);
    std::vector<double> losses;
    for (int step = 0; step < 4; ++step) {
      const Tensor x = numbers({5, 6}, kFloat32, static_cast<uint64_t>(step)).to(device);
      optimizer.zero_grad();
      const Tensor y = net(x);
      const Tensor loss = (y * y).mean();
      loss.backward();
      optimizer.step();
      losses.push_back(loss.item());
    }
    for (const Tensor& parameter : net->parameters()) {
      CHECK(parameter.device() == device);
      CHECK(parameter.grad().device() == device);
    }
    net->cpu();
    for (const Tensor& parameter : net->parameters())
      CHECK(parameter.grad().defined() == (device == Device()));  // moving a module drops its gradients
    for (const Tensor& parameter : net->parameters())
      losses.push_back(parameter.sum().item());
    return losses;
  };
  const std::vector<double> there = train(kDevice);
  const std::vector<double> here = train(Device());
  REQUIRE(there.size() == here.size());
  for (size_t i = 0; i < here.size(); ++i)
    CHECK(there[i] == doctest::Approx(here[i]).epsilon(1e-5));
  nn::BatchNorm1d norm(4);
  norm->cuda();
  for (const Tensor& buffer : norm->buffers())
    CHECK(buffer.is_cuda());
  CHECK_THROWS_AS(norm->cuda(99), DeviceError);
  CHECK(norm->buffers().front().device() == kDevice);
}

}  // namespace brigade::test::device_test
