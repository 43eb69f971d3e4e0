// PERF-06: a parameter is laid out otherwise than its slot in the bucket.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace other_layout_than_slot {

struct TransposedImpl : nn::Module {
  Tensor weight;
  TransposedImpl(bool contiguous, Device device) {
    const Tensor values = randn({3, 4}, {kFloat32, device});
    weight = register_parameter("weight", contiguous ? values.t().contiguous() : values.t());
  }
  Tensor forward(const Tensor& x) { return matmul(x, weight); }
};
BRIGADE_MODULE(Transposed);

std::vector<Tensor> run(const FaultContext& context) {
  Transposed net(context.fixed, context.device);
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  return {net->weight.grad()};
}

const AddFault add(Fault{.id = "PERF-06",
                         .title = "a parameter with other strides than its bucket",
                         .expected = {.kind = "strides_differ",
                                      .parameters = {"weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "wasteful",
                                      .severity = dist::Severity::Note},
                         .run = &run});

}  // namespace other_layout_than_slot
}  // namespace brigade::lab
