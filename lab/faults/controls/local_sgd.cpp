// OK-22: local SGD: after two common steps each rank steps by itself, and every second step the models are averaged.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <brigade/dist/ddp/model_averaging.h>

namespace brigade::lab {
namespace local_sgd {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  ddp.register_comm_hook(dist::post_local_sgd_hook(2));
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  dist::PeriodicModelAverager averager(context.group, 2, 2);
  for (int step = 0; step < 7; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    averager.average_parameters(net);
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "OK-22", .title = "local SGD with a model averager", .expected = {.detected = false}, .run = &run});

}  // namespace local_sgd
}  // namespace brigade::lab
