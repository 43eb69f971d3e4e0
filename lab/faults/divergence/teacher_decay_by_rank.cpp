// DIV-16: an averaged teacher moves by a decay that depends on the rank.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace teacher_decay_by_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  dist::DDPOptions options = context.options;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 3; ++step) {
    ddp(rank_batch(context)).backward();
    sgd_step(net->student->parameters());
    const NoGradGuard no_grad;
    const double decay = context.rank() == 1 && !context.fixed ? 0.9 : 0.99;
    net->teacher->weight.mul_(decay).add_(net->student->weight, 1 - decay);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-16",
                         .title = "an averaged teacher with another decay on rank 1",
                         .expected = {.kind = "parameters_differ",
                                      .parameters = {"teacher.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .module = "teacher"},
                         .run = &run});

}  // namespace teacher_decay_by_rank
}  // namespace brigade::lab
