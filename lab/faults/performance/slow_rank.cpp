// PERF-05: rank 1 is slow in its backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <thread>

namespace brigade::lab {
namespace slow_rank {

struct SlowImpl : PairImpl {
  bool slow = false;
  Tensor forward(const Tensor& x) {
    const Tensor middle = relu(a(x));
    if (slow) {
      middle.register_hook([](const Tensor&) -> Tensor {
        std::this_thread::sleep_for(std::chrono::milliseconds(40));
        return {};
      });
    }
    return b(middle);
  }
};
BRIGADE_MODULE(Slow);

std::vector<Tensor> run(const FaultContext& context) {
  Slow net;
  net->slow = context.rank() == 1 && !context.fixed;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 6; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "PERF-05",
                         .title = "rank 1 is slow in backward",
                         .expected = {.kind = "slow_rank",
                                      .parameters = {"a.weight"},
                                      .ranks = {1},
                                      .cause = "slow",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace slow_rank
}  // namespace brigade::lab
