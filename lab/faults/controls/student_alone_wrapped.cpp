// OK-15: the student alone is wrapped.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace student_alone_wrapped {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  net->to(context.device);
  auto ddp = wrap(context, net->student);
  for (int step = 0; step < 2; ++step) {
    const Tensor x = rank_batch(context);
    mean(square(ddp(x) - net->teacher(x))).backward();
    sgd_step(net->student->parameters());
  }
  return net->student->parameters();
}

const AddFault add(Fault{.id = "OK-15",
                         .title = "the student alone wrapped, a frozen teacher beside it",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace student_alone_wrapped
}  // namespace brigade::lab
