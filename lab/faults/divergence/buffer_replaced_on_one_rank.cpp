// DIV-27: rank 1 alone measures the size of its inputs anew and puts it into a buffer, with broadcast_buffers off.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace buffer_replaced_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  ScaledInputs net;
  dist::DDPOptions options = context.options;
  options.broadcast_buffers = false;
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    const Tensor x = rank_batch(context);
    optimizer.zero_grad();
    loss_of(ddp(x)).backward();
    optimizer.step();
    if (step != 1 || (context.rank() != 1 && !context.fixed)) continue;
    const NoGradGuard no_grad;
    const Tensor spread = sqrt(mean(square(x), {0}));
    if (context.fixed) context.group->all_reduce(spread, {.op = dist::ReduceOp::Avg})->wait();
    net->spread.copy_(spread);
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-27",
                         .title = "a buffer that rank 1 alone has measured anew, broadcast_buffers off",
                         .expected = {.kind = "buffers_written",
                                      .parameters = {"spread"},
                                      .ranks = {1},
                                      .cause = "values_differ",
                                      .severity = dist::Severity::Warning,
                                      .op = "copy_"},
                         .run = &run});

}  // namespace buffer_replaced_on_one_rank
}  // namespace brigade::lab
