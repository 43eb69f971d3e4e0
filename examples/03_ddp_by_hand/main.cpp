// What DistributedDataParallel does, by hand: after each backward the ranks put their gradients into one flat buffer,
// average it with one all-reduce, and take the averages back. Two ranks, which are threads here, train a network by
// hand and a copy under DistributedDataParallel, on different data per rank. Both end up bitwise equal. A third network
// without the averaging shows what goes wrong: its replicas drift apart.
#include <brigade/brigade.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <vector>

using namespace brigade;

void average_gradients(const nn::Sequential& net, dist::ProcessGroup& group) {
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : net->parameters())
    gradients.push_back(parameter.grad().flatten());
  const Tensor flat = cat(gradients);
  group.all_reduce(flat, {.op = dist::ReduceOp::Avg})->wait();
  int64_t start = 0;
  for (const Tensor& parameter : net->parameters()) {
    parameter.set_grad(flat.narrow(0, start, parameter.numel()).view(parameter.sizes()));
    start += parameter.numel();
  }
}

enum class Averages { Nowhere, ByHand, InDDP };

// Trains 50 steps on this rank's data; returns the final parameters.
std::vector<float> train(const dist::ProcessGroupPtr& group, Averages averages) {
  manual_seed(0);  // the same parameters on every rank
  nn::Sequential net(nn::Linear(4, 8), nn::Tanh(), nn::Linear(8, 1));
  manual_seed(100 + static_cast<uint64_t>(group->rank()));  // different data on every rank
  std::optional<dist::DistributedDataParallel<nn::Sequential>> ddp;
  if (averages == Averages::InDDP) ddp.emplace(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.02, .momentum = 0.9});
  for (int step = 0; step < 50; ++step) {
    const Tensor x = randn({16, 4});
    const Tensor y = x.sum({1}, true);
    optimizer.zero_grad();
    mse_loss(ddp ? (*ddp)(x) : net(x), y).backward();
    if (averages == Averages::ByHand) average_gradients(net, *group);
    optimizer.step();
  }
  std::vector<float> values;
  for (const Tensor& parameter : net->parameters())
    for (const float value : parameter.to_vector<float>())
      values.push_back(value);
  return values;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i)
    largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

int main() {
  std::vector<float> alone[2], by_hand[2], with_ddp[2];
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    alone[group->rank()] = train(group, Averages::Nowhere);
    by_hand[group->rank()] = train(group, Averages::ByHand);
    with_ddp[group->rank()] = train(group, Averages::InDDP);
  });
  std::printf("largest difference of a parameter after 50 steps\n");
  std::printf("  between the ranks, nothing averaged:    %g\n", largest_difference(alone[0], alone[1]));
  std::printf("  between the ranks, averaged by hand:    %g\n", largest_difference(by_hand[0], by_hand[1]));
  std::printf("  by hand and DistributedDataParallel:    %g\n", largest_difference(by_hand[0], with_ddp[0]));
  const bool as_claimed =
      alone[0] != alone[1] && by_hand[0] == by_hand[1] && by_hand[0] == with_ddp[0] && by_hand[1] == with_ddp[1];
  return as_claimed ? 0 : 1;
}
