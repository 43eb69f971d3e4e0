// UNU-35: an encoder and a decoder in wrappers of their own, moved by one optimizer, with a detach() between.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace wrapper_cut_off {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;  // a encodes, b decodes
  net->to(context.device);
  if (context.watched) *context.watched = net->parameters();
  dist::DistributedDataParallel encoder(net->a, context.group, context.options);
  dist::DistributedDataParallel decoder(net->b, context.group, context.options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 6; ++step) {
    optimizer.zero_grad();
    Tensor code = encoder(rank_batch(context));
    if (!context.fixed) {
      context.fault_on_next_line();
      code = code.detach();
    }
    loss_of(decoder(code)).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-35",
                         .title = "a wrapper that a detach() cuts off from the loss of another one",
                         .expected = {.kind = "unreached_module",
                                      .parameters = {"weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "detached",
                                      .severity = dist::Severity::Warning},
                         .run = &run});

}  // namespace wrapper_cut_off
}  // namespace brigade::lab
