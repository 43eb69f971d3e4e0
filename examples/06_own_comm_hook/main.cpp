// A custom communication hook, which controls how the ranks average a bucket of gradients. This hook sends bfloat16
// instead of float32, half of the bytes, and counts what it sends. The averages then have 8 significant bits: the
// training is nearly the same as without the hook, and still identical on all ranks.
#include <brigade/brigade.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

using namespace brigade;

class HalfTheBytes final : public dist::CommHook {
 public:
  std::string name() const override { return "half_the_bytes"; }

  // Starts the communication and returns at once. Once the Work is complete, bucket.buffer() must hold the mean: the
  // options request ReduceOp::Avg, and `then` runs a function after the all-reduce.
  dist::WorkPtr run(dist::ProcessGroup& group, const dist::GradBucket& bucket, const dist::CollectiveOptions& options,
                    SourceLocation where) override {
    const Tensor small = group.allocate(bucket.buffer().numel(), kBFloat16, bucket.buffer().device());
    small.copy_(bucket.buffer());
    bytes_of_gradients += static_cast<int64_t>(bucket.buffer().nbytes());
    bytes_sent += static_cast<int64_t>(small.nbytes());
    const dist::WorkPtr sent = group.all_reduce(small, options, where);
    return dist::then(sent, [small, buffer = bucket.buffer()] { buffer.copy_(small); });
  }

  int64_t bytes_of_gradients = 0, bytes_sent = 0;
};

// Trains 20 steps on this rank's data, with `hook` unless it is null; returns this rank's weights.
std::vector<float> train(const dist::ProcessGroupPtr& group, const dist::CommHookPtr& hook) {
  manual_seed(0);
  nn::Linear net(8, 1);
  dist::DistributedDataParallel<nn::Linear> ddp(net, group);
  if (hook) ddp.register_comm_hook(hook);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  manual_seed(100 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < 20; ++step) {
    const Tensor x = randn({32, 8});
    optimizer.zero_grad();
    mse_loss(ddp(x), x.sum({1}, true)).backward();  // the weights converge to 1
    optimizer.step();
  }
  return net->weight.to_vector<float>();
}

int main() {
  std::vector<float> plain[2], hooked[2];
  std::shared_ptr<HalfTheBytes> hooks[2];
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const int rank = group->rank();
    hooks[rank] = std::make_shared<HalfTheBytes>();
    plain[rank] = train(group, nullptr);
    hooked[rank] = train(group, hooks[rank]);
  });
  float difference = 0;
  for (size_t i = 0; i < plain[0].size(); ++i)
    difference = std::max(difference, std::abs(hooked[0][i] - plain[0][i]));
  std::printf("gradients: %lld bytes, sent: %lld bytes\n", static_cast<long long>(hooks[0]->bytes_of_gradients),
              static_cast<long long>(hooks[0]->bytes_sent));
  std::printf("first weight: %.5f without the hook, %.5f with it\n", plain[0][0], hooked[0][0]);
  std::printf("largest difference of a weight: %.5f; the ranks hold %s bits\n", difference,
              hooked[0] == hooked[1] ? "the same" : "DIFFERENT");
  const bool half = 2 * hooks[0]->bytes_sent == hooks[0]->bytes_of_gradients && hooks[0]->bytes_sent > 0;
  return half && hooked[0] == hooked[1] && difference > 0 && difference < 0.01F ? 0 : 1;
}
