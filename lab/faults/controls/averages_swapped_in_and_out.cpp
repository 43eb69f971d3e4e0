// OK-27: averaged weights are swapped in for an evaluation, and out again: on all ranks, and once more on rank 0 alone.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <utility>

namespace brigade::lab {
namespace averages_swapped_in_and_out {

void swap_values(const Tensor& a, const Tensor& b) {
  const Tensor before = a.detach().clone();
  a.copy_(b);
  b.copy_(before);
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  std::vector<Tensor> averages;
  for (const Tensor& parameter : net->parameters())
    averages.push_back(parameter.detach().clone());
  const auto swap_all = [&] {
    for (size_t i = 0; i < averages.size(); ++i)
      swap_values(net->parameters()[i], averages[i]);
  };
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    const NoGradGuard no_grad;
    for (size_t i = 0; i < averages.size(); ++i)
      averages[i].mul_(0.9).add_(net->parameters()[i], 0.1);
    if (step == 0 || (step == 1 && context.rank() == 0)) {
      swap_all();
      loss_of(net(rank_batch(context))).item<float>();
      swap_all();
    }
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-27",
                         .title = "averaged weights swapped in and out for an evaluation",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace averages_swapped_in_and_out
}  // namespace brigade::lab
