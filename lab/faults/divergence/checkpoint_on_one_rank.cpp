// DIV-22: rank 1 alone loads the best checkpoint and trains on.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace checkpoint_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  nn::Named<Tensor> best;
  for (const auto& [name, tensor] : net->state_dict())
    best.emplace_back(name, tensor.clone());
  for (int step = 0; step < 3; ++step) {
    const bool is_worse = step == 2;  // by its own validation loss
    if (is_worse && (context.rank() == 1 || context.fixed)) net->load_state_dict(best);
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-22",
                         .title = "a checkpoint loaded on rank 1 only",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .op = "load_state_dict"},
                         .run = &run});

}  // namespace checkpoint_on_one_rank
}  // namespace brigade::lab
