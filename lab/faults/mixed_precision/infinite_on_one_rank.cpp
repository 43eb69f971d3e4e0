// AMP-13: a gradient is infinite on rank 1 alone, of a part that each rank keeps for itself: all skip, and all scales fall.
#include <brigade/amp/grad_scaler.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <limits>

namespace brigade::lab {
namespace infinite_on_one_rank {

struct PersonalImpl : nn::Module {
  nn::Linear shared{nullptr}, own{nullptr};
  PersonalImpl() {
    shared = register_module("shared", nn::Linear(4, 4, false));
    own = register_module("own", nn::Linear(4, 4, false));
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x) { return {shared(x), own(x)}; }
};
BRIGADE_MODULE(Personal);

std::vector<Tensor> run(const FaultContext& context) {
  Personal net;
  dist::DDPOptions options = context.options;
  options.parameters_and_buffers_to_ignore = {"own.weight"};
  auto ddp = wrap(context, net, options);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  amp::GradScaler scaler({.init_scale = 1024});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const double spike = step == 1 && context.rank() == 1 ? std::numeric_limits<double>::infinity() : 1.0;
    const auto [of_shared, of_own] = ddp(rank_batch(context));
    scaler.scale(loss_of(of_shared) + loss_of(of_own) * spike).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  return {net->shared->weight, full({1}, scaler.get_scale())};
}

const AddFault add(Fault{.id = "AMP-13",
                         .title = "an infinite gradient on one rank only: all skip alike",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace infinite_on_one_rank
}  // namespace brigade::lab
