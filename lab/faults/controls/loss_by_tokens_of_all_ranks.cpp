// OK-24: batches of other sizes on each rank; the loss is divided by the tokens of all ranks.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace loss_by_tokens_of_all_ranks {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const int64_t tokens = 3 + 4 * context.rank();
  for (int step = 0; step < 3; ++step) {
    const Tensor all_tokens = full({1}, static_cast<double>(tokens), {kFloat32, context.device});
    context.group->all_reduce(all_tokens, {.op = dist::ReduceOp::Sum})->wait();
    optimizer.zero_grad();
    const Tensor sum_of_losses = square(ddp(rank_batch(context, tokens))).sum();
    // The wrapper divides by the ranks.
    (sum_of_losses * (context.group->size() / all_tokens.item<float>())).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-24",
                         .title = "uneven batches, the loss divided by the tokens of all ranks",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace loss_by_tokens_of_all_ranks
}  // namespace brigade::lab
