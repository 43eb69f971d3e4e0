#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/autograd/gradcheck.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

namespace brigade::test::sync_batch_norm_threads_test {
Tensor random_tensor(const Shape& sizes, uint64_t seed, DType dtype) {
  RandomGenerator generator(seed);
  return randn(sizes, kFloat32, &generator).to(dtype);
}

TEST_CASE("SyncBatchNorm on one rank is BatchNorm, bit for bit, in every floating dtype") {
  const auto group = dist::make_thread_groups(1).front();
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    for (const DType weights : {dtype, kFloat32}) {  // half inputs with float32 weights, as under mixed precision
      if (dtype == kFloat64 && weights != dtype) continue;
      CAPTURE(name(dtype));
      CAPTURE(name(weights));
      nn::BatchNorm2d plain(4, {.dtype = weights});
      dist::SyncBatchNorm sync(4, group, {.dtype = weights});
      for (int step = 0; step < 2; ++step) {
        const Tensor x = random_tensor({3, 4, 2, 5}, static_cast<uint64_t>(step), dtype).requires_grad_();
        const Tensor twin = x.detach().clone().requires_grad_();
        const Tensor slope = random_tensor({3, 4, 2, 5}, 9, dtype);
        const Tensor y = plain(x);
        const Tensor other = sync(twin);
        CHECK(test::bits_of({y}) == test::bits_of({other}));
        (y * slope).sum().backward();
        (other * slope).sum().backward();
        CHECK(test::bits_of({x.grad()}) == test::bits_of({twin.grad()}));
      }
      for (size_t p = 0; p < 2; ++p)
        CHECK(test::bits_of({plain->parameters()[p].grad()}) == test::bits_of({sync->parameters()[p].grad()}));
      CHECK(test::bits_of(plain->buffers()) == test::bits_of(sync->buffers()));
    }
  }
}

TEST_CASE("SyncBatchNorm: gradients equal finite differences") {
  const auto group = dist::make_thread_groups(1).front();
  for (const Shape& sizes : {Shape{4, 3}, Shape{2, 3, 2, 2}}) {
    const auto result = autograd::gradcheck(
        [&](const std::vector<Tensor>& in) {
          return dist::sync_batch_norm(group, in[0], in[1], in[2], {}, {}, 0.1, 1e-5, "norm");
        },
        {random_tensor(sizes, 1, kFloat64).requires_grad_(), random_tensor({3}, 2, kFloat64).requires_grad_(),
         random_tensor({3}, 3, kFloat64).requires_grad_()});
    CHECK_MESSAGE(result.ok, result.report);
  }
}

TEST_CASE("SyncBatchNorm: a second derivative is refused, not left out") {
  dist::SyncBatchNorm norm(3, dist::make_thread_groups(1).front());
  const std::vector<Tensor> x{random_tensor({4, 3}, 1, kFloat32).requires_grad_()};
  const std::vector<Tensor> loss{sum(square(norm(x[0])))};
  CHECK_THROWS_WITH_AS(autograd::grad(loss, x, {.create_graph = true}),
                       doctest::Contains("SyncBatchNorm has no second derivative: create_graph ran through it"),
                       AutogradError);
}

TEST_CASE("SyncBatchNorm: backward after the layer and the handle of the group are gone; weights alone need no peers") {
  const Tensor x = random_tensor({4, 3}, 1, kFloat32).requires_grad_();
  Tensor y;
  {
    auto groups = dist::make_thread_groups(1);
    dist::SyncBatchNorm norm(3, groups[0]);
    y = norm(x);
  }
  y.sum().backward();
  CHECK(x.grad().defined());

  const auto group = dist::make_thread_groups(1).front();
  dist::SyncBatchNorm norm(3, group);
  const Tensor z = norm(random_tensor({4, 3}, 1, kFloat32));
  const size_t before = group->flight_recorder().entries().size();
  z.sum().backward();
  CHECK(group->flight_recorder().entries().size() == before);
  CHECK(norm->weight.grad().defined());
}

TEST_CASE("convert_sync_batchnorm finds every layer of the tree once, and train() and eval() go on working") {
  const auto group = dist::make_thread_groups(1).front();
  nn::BatchNorm1d shared(4);
  nn::Sequential net(nn::Linear(4, 4), shared, nn::Sequential(shared, nn::BatchNorm1d(4)),
                     dist::SyncBatchNorm(4, dist::make_thread_groups(1).front()));
  CHECK(dist::convert_sync_batchnorm(net, group) == 3);
  CHECK(dist::convert_sync_batchnorm(net, group) == 3);
  net(random_tensor({3, 4}, 1, kFloat32));
  std::string names;
  for (const auto& entry : group->flight_recorder().entries())
    names += describe(entry) + ", ";
  // The shared layer is known by the place where it was registered first.
  CHECK(names ==
        "statistics of SyncBatchNorm `2.0`, statistics of SyncBatchNorm `2.0`, statistics of SyncBatchNorm `2.1`, "
        "statistics of SyncBatchNorm `3`, ");
  net->eval();
  net(random_tensor({1, 4}, 1, kFloat32));
  CHECK(group->flight_recorder().entries().size() == 4);
}

}  // namespace brigade::test::sync_batch_norm_threads_test
