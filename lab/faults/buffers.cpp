// These programs use a buffer in several forwards, or replace it in forward.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {

// BUF-02: a buffer is used in forward, two forwards, one backward.
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
                         .name = "used_in_two_forwards",
                         .title = "any buffer used in two forwards before one backward",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace used_in_two_forwards

// BUF-03: forward assigns another tensor to the member that holds a buffer: the old tensor is broadcast and saved.
namespace member_assigned_anew {

// Keeps a moving average of the size of its inputs.
struct MovingSpreadImpl : ScaledInputsImpl {
  bool writes_into_buffer = false;
  Tensor forward(const Tensor& x) {
    {
      const NoGradGuard no_grad;
      const Tensor moved = spread * 0.9 + mean(abs(x), {0}) * 0.1;
      if (writes_into_buffer)
        spread.copy_(moved);
      else
        spread = moved;
    }
    return ScaledInputsImpl::forward(x);
  }
};
BRIGADE_MODULE(MovingSpread);

std::vector<Tensor> run(const FaultContext& context) {
  MovingSpread net;
  net->writes_into_buffer = context.fixed;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 5; ++step) {
    optimizer.zero_grad();
    context.fault_on_next_line();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "BUF-03",
                         .name = "member_assigned_anew",
                         .title = "the member that holds a buffer gets another tensor in forward",
                         .expected = {.kind = "stale_buffer",
                                      .parameters = {"spread"},
                                      .ranks = {kAnyRanks},
                                      .cause = "replaced",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace member_assigned_anew

}  // namespace brigade::lab
