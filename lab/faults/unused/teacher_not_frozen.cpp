// UNU-24: a teacher inside the wrapper that is not frozen, but runs under no_grad.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace teacher_not_frozen {

struct UnfrozenImpl : DistillationImpl {
  UnfrozenImpl() : DistillationImpl(false) {}
  Tensor forward(const Tensor& x) {
    Tensor wanted;
    {
      const NoGradGuard no_grad;
      wanted = teacher(x);
    }
    return mean(square(student(x) - wanted));
  }
};
BRIGADE_MODULE(Unfrozen);

std::vector<Tensor> run(const FaultContext& context) {
  Unfrozen net;
  auto ddp = wrap(context, net);
  ddp(rank_batch(context)).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "UNU-24",
    .title = "a teacher that is not frozen, run under no_grad",
    .expected = {.kind = "unused_parameters", .parameters = {"teacher.weight"}, .cause = "no_grad"},
    .run = &run});

}  // namespace teacher_not_frozen
}  // namespace brigade::lab
