// DIV-21: a parameter that every rank computes for itself, with a kernel that is not deterministic on rank 1.
#include <brigade/core/device_runtime.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>

namespace brigade::lab {
namespace kernel_not_deterministic {

std::vector<Tensor> run(const FaultContext& context) {
  Distillation net;
  dist::DDPOptions options = context.options;
  options.verify_every = 1;
  auto ddp = wrap(context, net, options);
  for (int step = 0; step < 3; ++step) {
    ddp(rank_batch(context)).backward();
    if (step == 1 && context.rank() == 1 && !context.fixed) {
      const Tensor& weight = net->teacher->weight;
      std::vector<float> values = weight.to_vector<float>();
      values[5] = std::nextafter(values[5], 10.0F);
      copy_bytes(weight.raw_data(), context.device, values.data(), kCPU, weight.nbytes());
    }
    sgd_step(net->student->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-21",
    .title = "a replicated parameter one ulp off on rank 1",
    .expected = {.kind = "parameters_differ", .parameters = {"teacher.weight"}, .ranks = {1}, .cause = "values_differ"},
    .run = &run});

}  // namespace kernel_not_deterministic
}  // namespace brigade::lab
