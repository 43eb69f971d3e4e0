// DIV-26: Adam goes on after a join in which rank 1 had a batch less: its moments are not those of the others.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/ddp/join.h>

#include <optional>

namespace brigade::lab {
namespace adam_after_uneven_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  std::optional<optim::Adam> optimizer;
  optimizer.emplace(net->parameters(), optim::AdamOptions{.lr = 0.1});
  const auto train = [&] {
    optimizer->zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer->step();
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    dist::Join join(ddp);
    for (int batch = 0; batch < (context.rank() == 1 ? 2 : 3); ++batch)
      train();
    join.finish();
    if (context.fixed) optimizer.emplace(net->parameters(), optim::AdamOptions{.lr = 0.1});
  }
  train();  // on the last batches of all
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-26",
                         .title = "Adam goes on after an uneven join",
                         .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "steps_differ"},
                         .run = &run});

}  // namespace adam_after_uneven_join
}  // namespace brigade::lab
