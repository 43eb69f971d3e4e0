// UNU-34: the losses of a step are read as numbers, and their mean is made a tensor again, on every rank.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace loss_of_numbers {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    context.fault_on_next_line();
    Tensor loss = loss_of(ddp(rank_batch(context)));
    if (!context.fixed) {
      context.fault_on_next_line();
      const float number = loss.item<float>();
      loss = scalar_tensor(number, {kFloat32, context.device}).requires_grad_();
    }
    loss.backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "UNU-34",
                         .title = "a loss made of numbers that were read, on every rank",
                         .expected = {.kind = "unreached_module",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {kAnyRanks},
                                      .cause = "output_dropped",
                                      .severity = dist::Severity::Warning,
                                      .words = {"its value was read as a number, by item()"}},
                         .run = &run});

}  // namespace loss_of_numbers
}  // namespace brigade::lab
