// Five training steps on random images, of which the timeline keeps the last two.
#include <brigade/lab/recipes/digits_trace.h>

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/timeline/trace.h>
#include <brigade/kernels/factory.h>
#include <brigade/lab/rank_job.h>
#include <brigade/lab/recipes/digits.h>
#include <brigade/optim/optim.h>

#include <nlohmann/json.hpp>

#include <algorithm>

namespace brigade::lab {

namespace {

using nlohmann::json;

std::string digits_trace(const dist::ProcessGroupPtr& group, const std::string& arguments) {
  const json given = json::parse(arguments);
  manual_seed(1);
  DigitsNet net;
  dist::DDPOptions options;
  options.bucket_cap_mb = given.at("bucket_mb");
  options.first_bucket_mb = std::min(1.0, options.bucket_cap_mb);
  dist::DistributedDataParallel<DigitsNet> ddp(net, group, options);
  ddp.reducer().timeline().keep(2);
  optim::SGD optimizer(net->parameters(), {.lr = 0.05});
  Generator generator(7 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < 5; ++step) {
    const Tensor images = randn({32, 1, 8, 8}, kFloat32, &generator);
    const Tensor labels = randint(0, 10, {32}, {kInt64}, &generator);
    optimizer.zero_grad();
    cross_entropy(ddp(images), labels).backward();
    optimizer.step();
  }
  return dist::trace_json(*group, ddp.reducer());
}

const AddRankJob add_digits_trace(kDigitsTraceJob, &digits_trace);

}  // namespace

}  // namespace brigade::lab
