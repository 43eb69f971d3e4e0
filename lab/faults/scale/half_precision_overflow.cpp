// SCL-05: half-precision communication of gradients that do not fit.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace half_precision_overflow {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  ddp.register_comm_hook(context.fixed ? dist::bf16_compress_hook() : dist::fp16_compress_hook());
  // The gradient of b is large, that of a is small.
  const Tensor out = net->b(relu(net->a(abs(rank_batch(context)))).detach());
  (out.sum() * 1e6 + loss_of(net->a(rank_batch(context)))).backward();
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "SCL-05",
    .title = "fp16 compression overflows",
    .expected = {.kind = "hook_result", .parameters = {"b.weight"}, .cause = "overflow", .op = "fp16_compress"},
    .run = &run});

}  // namespace half_precision_overflow
}  // namespace brigade::lab
