// SCL-18: weights with decay, biases without it: a parameter that is in neither group never moves.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace parameter_in_no_group {

std::vector<Tensor> run(const FaultContext& context) {
  Normed net;
  auto ddp = wrap(context, net);
  std::vector<Tensor> with_decay = net->layer->parameters();
  std::vector<Tensor> without_decay = {net->norm->bias};
  if (context.fixed) without_decay.push_back(net->norm->weight);
  optim::SGD optimizer(
      std::vector<optim::SGD::Group>{{with_decay, {.lr = 0.01, .weight_decay = 0.1}}, {without_decay, {.lr = 0.01}}});
  for (int step = 0; step < 36; ++step) {
    net->zero_grad();
    loss_of(ddp(rank_batch(context)) - 1.0).backward();
    context.fault_on_next_line();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "SCL-18",
                         .title = "a parameter in none of the optimizer's groups",
                         .expected = {.kind = "unheld_parameters",
                                      .parameters = {"norm.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "not_held",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace parameter_in_no_group
}  // namespace brigade::lab
