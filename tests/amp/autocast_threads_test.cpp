// The state of autocast belongs to a thread; the rules that operations keep are shared.
#include <brigade/amp/autocast.h>
#include <brigade/autograd/functional.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace brigade::test::autocast_threads_test {
using amp::autocast;

TEST_CASE("a thread that begins inside of a region is outside of it") {
  const autocast guard(kCPU, kBFloat16);
  DType there = kBool;
  std::thread([&] { there = mm(ones({2, 2}), ones({2, 2})).dtype(); }).join();
  CHECK(there == kFloat32);
  CHECK(mm(ones({2, 2}), ones({2, 2})).dtype() == kBFloat16);
}

TEST_CASE("threads in regions of their own use one weight, each through its own cast") {
  const Tensor weight = ones({2, 2}).requires_grad_();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (const DType dtype : {kBFloat16, kFloat16, kBFloat16, kFloat16}) {
    threads.emplace_back([&, dtype] {
      for (int i = 0; i < 20; ++i) {
        const autocast guard(kCPU, dtype);
        const Tensor y = mm(mm(ones({2, 2}), weight), weight);
        const bool kept = amp::autocast_cache_size() == 1;
        const bool loss_in_float32 = mse_loss(y, y).dtype() == kFloat32;
        right += y.dtype() == dtype && kept && loss_in_float32 ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  CHECK(right == 80);
}

}  // namespace brigade::test::autocast_threads_test
