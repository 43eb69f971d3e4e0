// DIV-23: rank 1 alone loads the state of its optimizer.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace optimizer_state_on_one_rank {

optim::OptimizerState copy_of(optim::OptimizerState state) {
  for (auto& [name, tensor] : state.tensors)
    tensor = tensor.clone();
  return state;
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::Adam optimizer(net->parameters(), {.lr = 0.1});
  const auto train = [&] {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  };
  train();
  const optim::OptimizerState saved = copy_of(optimizer.state_dict());
  train();
  if (context.rank() == 1 || context.fixed) optimizer.load_state_dict(saved);
  train();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-23",
    .title = "the state of an optimizer loaded on rank 1 only",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "values_differ", .op = "load_state_dict"},
    .run = &run});

}  // namespace optimizer_state_on_one_rank
}  // namespace brigade::lab
