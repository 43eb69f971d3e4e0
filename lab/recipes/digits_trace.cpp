// Five training steps on random images, of which the timeline keeps the last two.
#include <brigade/lab/recipes/digits.h>

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <algorithm>

namespace brigade::lab {

std::string trace_digits(const dist::ProcessGroupPtr& group, double bucket_mb) {
  manual_seed(1);
  DigitsNet net;
  dist::DDPOptions options;
  options.bucket_cap_mb = bucket_mb;
  options.first_bucket_mb = std::min(1.0, options.bucket_cap_mb);
  dist::DistributedDataParallel<DigitsNet> ddp(net, group, options);
  ddp.timeline().keep(2);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05});
  RandomGenerator generator(7 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < 5; ++step) {
    const Tensor images = randn({32, 1, 8, 8}, kFloat32, &generator);
    const Tensor labels = randint(0, 10, {32}, {kInt64}, &generator);
    optimizer.zero_grad();
    cross_entropy(ddp(images), labels).backward();
    optimizer.step();
  }
  return dist::trace_json(ddp);
}

}  // namespace brigade::lab
