// DIV-31: a rate for each layer, in the order in which a set of names lists them: on rank 1 that is another one.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <utility>

namespace brigade::lab {
namespace other_parameter_group_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  std::vector<std::string> names = {"a", "b"};
  if (context.rank() == 1 && !context.fixed) std::swap(names[0], names[1]);
  std::vector<optim::SGD::Group> groups;
  double rate = 0.01;
  for (const std::string& name : names) {
    groups.push_back({(name == "a" ? net->a : net->b)->parameters(), {.lr = rate}});
    rate *= 10;
  }
  optim::SGD optimizer(groups);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    context.fault_on_next_line();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-31",
                         .title = "layers in other groups of the optimizer on rank 1, with other rates",
                         .expected = {.kind = "optimizers_differ",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "options_differ",
                                      .op = "parameter groups"},
                         .run = &run});

}  // namespace other_parameter_group_on_one_rank
}  // namespace brigade::lab
