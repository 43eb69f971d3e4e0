// OK-19: a frozen teacher has a wrapper of its own.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace teacher_with_own_wrapper {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  net->to(context.device);
  auto teacher = wrap(context, net->teacher);
  dist::DistributedDataParallel student(net->student, context.group, context.options);
  const Tensor x = rank_batch(context);
  mean(square(student(x) - teacher(x))).backward();
  sgd_step(net->student->parameters());
  return net->student->parameters();
}

const AddFault add(Fault{
    .id = "OK-19", .title = "a frozen module wrapped alone", .expected = {.detected = false}, .run = &run});

}  // namespace teacher_with_own_wrapper
}  // namespace brigade::lab
