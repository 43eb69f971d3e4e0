// DIV-01: the whole tree is wrapped, the loss comes from a child that is called directly.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace child_called_directly {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    mean(square(net->student(x) - net->teacher(x))).backward();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-01",
                         .title = "the child called directly, round the wrapper",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace child_called_directly
}  // namespace brigade::lab
