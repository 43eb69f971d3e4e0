// OK-21: gradients are set by hand, from averaged ones: where two tasks conflict, each loses its part along the other
// (Yu and others: "Gradient surgery for multi-task learning", NeurIPS 2020).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

namespace brigade::lab {
namespace gradients_projected_by_hand {

// Without what it has against `other`.
Tensor projected(const Tensor& gradient, const Tensor& other) {
  const double along = (gradient * other).sum().item<float>();
  return along >= 0 ? gradient : gradient - other * (along / square(other).sum().item<float>());
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 2; ++step) {
    std::vector<std::vector<Tensor>> of_tasks;
    for (const double target : {1.0, -1.0}) {
      optimizer.zero_grad();
      loss_of(ddp(rank_batch(context)) - target).backward();
      of_tasks.emplace_back();
      for (const Tensor& parameter : net->parameters())
        of_tasks.back().push_back(parameter.grad().clone());
    }
    for (size_t i = 0; i < net->parameters().size(); ++i) {
      const Tensor& first = of_tasks[0][i];
      const Tensor& second = of_tasks[1][i];
      net->parameters()[i].set_grad(projected(first, second) + projected(second, first));
    }
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-21",
                         .title = "averaged gradients of two tasks projected and set by hand",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace gradients_projected_by_hand
}  // namespace brigade::lab
