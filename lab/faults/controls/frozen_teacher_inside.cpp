// OK-14: a frozen teacher inside the wrapper; the optimizer holds the student only.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace frozen_teacher_inside {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    ddp(rank_batch(context)).backward();
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-14", .title = "a frozen teacher inside the wrapper", .expected = {.detected = false}, .run = &run});

}  // namespace frozen_teacher_inside
}  // namespace brigade::lab
