// DIV-28: a kernel of the user's own writes to a weight on rank 1; the version counts it, no line is known.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace written_through_pointer {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    if (step == 1 && (context.rank() == 1 || context.fixed)) {
      kernels::fill(net->b->weight, 0.25);
      net->b->weight.bump_version();
    }
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-28",
                         .title = "a weight written through its pointer on rank 1",
                         .expected = {.kind = "parameters_written",
                                      .parameters = {"b.weight"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .module = "b",
                                      .file_and_line = false,
                                      .op = "bump_version"},
                         .run = &run});

}  // namespace written_through_pointer
}  // namespace brigade::lab
