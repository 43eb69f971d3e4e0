// BUF-02: a buffer is used in forward, two forwards, one backward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace used_in_two_forwards {

struct WithBufferImpl : PairImpl {
  Tensor scale;
  WithBufferImpl() { scale = register_buffer("scale", full({4}, 2.0)); }
  Tensor forward(const Tensor& x) { return b(a(x) * scale); }
};
BRIGADE_MODULE(WithBuffer);

std::vector<Tensor> run(const FaultContext& context) {
  WithBuffer net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const Tensor x = rank_batch(context);
    (loss_of(ddp(x)) + loss_of(ddp(x + 1.0))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "BUF-02",
                         .title = "any buffer used in two forwards before one backward",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace used_in_two_forwards
}  // namespace brigade::lab
