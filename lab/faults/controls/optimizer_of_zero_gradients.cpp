// OK-30: all gradients of one of two optimizers are zero: they are gradients, and finite.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace optimizer_of_zero_gradients {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net);
  optim::SGD of_trunk(net->t->parameters(), {.lr = 0.1});
  std::vector<Tensor> heads{net->h1->weight, net->h2->weight};
  optim::SGD of_heads(heads, {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024, .growth_interval = 1});
  for (int step = 0; step < 3; ++step) {
    // The heads count for nothing at first.
    const double weight = step < 2 ? 0.0 : 1.0;
    of_trunk.zero_grad();
    of_heads.zero_grad();
    const auto [first, second] = ddp(rank_batch(context));
    scaler.scale((loss_of(first) + loss_of(second)) * weight).backward();
    scaler.step(of_trunk);
    scaler.step(of_heads);
    scaler.update();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-30",
                         .title = "optimizers whose gradients are all zero, under a scaler",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace optimizer_of_zero_gradients
}  // namespace brigade::lab
