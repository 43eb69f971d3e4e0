// A first program: a small network learns XOR on one rank. It builds against the installed package.
#include <brigade/brigade.h>

#include <cstdio>

using namespace brigade;

struct NetImpl : nn::Module {
  nn::Linear fc1{nullptr}, fc2{nullptr};
  NetImpl() {
    fc1 = register_module("fc1", nn::Linear(2, 16));
    fc2 = register_module("fc2", nn::Linear(16, 1));
  }
  Tensor forward(const Tensor& x) { return fc2(brigade::tanh(fc1(x))); }
};
BRIGADE_MODULE(Net);

int main() {
  manual_seed(0);
  const Tensor x = tensor(std::vector<float>{0, 0, 0, 1, 1, 0, 1, 1}, {4, 2});
  const Tensor y = tensor(std::vector<float>{0, 1, 1, 0}, {4, 1});

  // The same program runs on several ranks: take the group from dist::init_process_group() and start it with `brigade
  // run -n 2`.
  auto group = dist::make_thread_groups(1).front();
  Net net;
  dist::DistributedDataParallel ddp(net, group);
  optim::Adam optimizer(net->parameters(), {.lr = 0.05});

  double last = 0;
  for (int step = 0; step < 300; ++step) {
    optimizer.zero_grad();
    const Tensor loss = mse_loss(ddp(x), y);
    loss.backward();
    optimizer.step();
    last = loss.item();
    if (step % 50 == 0) std::printf("step %3d  loss %.5f\n", step, last);
  }
  std::printf("final loss %.6f\n", last);
  return last < 0.01 ? 0 : 1;
}
