// DIV-02: the same, with an all_reduce of the loss after backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace all_reduce_of_the_loss {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    const Tensor loss = mean(square(net->student(x) - net->teacher(x)));
    loss.backward();
    context.group->all_reduce(loss.detach(), {.op = dist::ReduceOp::Avg, .description = "loss"})->wait();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-02",
                         .title = "the child called directly, and an all_reduce of the loss",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace all_reduce_of_the_loss
}  // namespace brigade::lab
