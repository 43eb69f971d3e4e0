// What one rank of many does differently is reported, and training goes on: no rank investigates it alone.
//
// BRIGADE_MANY_RANKS=1: with 32 and 64 ranks; otherwise with 28, where a float16 mean no longer shows it to all ranks.
#include "on_ranks.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <algorithm>
#include <cstdlib>

namespace brigade::test::many_ranks_test {
// Rank 0 accumulates one micro-batch less than the others, or multiplies its loss by 2.
enum class Odd : uint8_t { Gathers, Multiplies };

std::string train(const dist::ProcessGroupPtr& group, DType dtype, Odd odd) {
  constexpr int kGathering = 6, kSteps = 6;
  manual_seed(1);
  nn::Linear net(6, 2);
  net->to(dtype);
  dist::DistributedDataParallel<nn::Linear> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 1e-3});
  const bool first = group->rank() == 0;
  RandomGenerator generator(100 + static_cast<uint64_t>(group->rank()));
  for (int step = 0; step < kSteps; ++step) {
    optimizer.zero_grad();
    const auto loss = [&] {
      const Tensor of_batch = mean(square(ddp(randn({4, 6}, kFloat32, &generator).to(dtype))));
      return odd == Odd::Multiplies && first ? of_batch * 2.0 : of_batch;
    };
    for (int i = odd == Odd::Gathers && first ? 1 : 0; i < kGathering; ++i) {
      const auto waits = ddp.no_sync();
      loss().backward();
    }
    loss().backward();
    optimizer.step();
  }
  const std::string kind = odd == Odd::Gathers ? "uneven_micro_batches" : "uneven_factors";
  const auto told = ddp.advisories();
  const auto is_it = [&](const dist::Verdict& each) { return each.kind == kind; };
  return std::ranges::any_of(told, is_it) ? "" : "nothing was said of " + kind;
}

TEST_CASE("one of many ranks that is otherwise is reported, and stops no training") {
  const std::vector<int> sizes = std::getenv("BRIGADE_MANY_RANKS") ? std::vector<int>{32, 64} : std::vector<int>{28};
  on("threads", sizes, [](const std::string& backend, int ranks) {
    for (const DType dtype : {kFloat16, kBFloat16, kFloat32}) {
      const std::string type = name(dtype);
      CAPTURE(type);
      for (const Odd odd : {Odd::Gathers, Odd::Multiplies})
        expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) { return train(group, dtype, odd); });
    }
  });
}

}  // namespace brigade::test::many_ranks_test
