// OK-25: a graph that has to be kept: the norms of two losses' gradients at the last layer weigh the losses, as in
// VQGAN (Esser, Rombach, Ommer: "Taming transformers for high-resolution image synthesis", CVPR 2021).
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>

namespace brigade::lab {
namespace graph_kept_for_a_weight {

double norm_at(const Tensor& loss, const Tensor& weight) {
  const std::vector<Tensor> gradients = autograd::grad(loss, weight, {.retain_graph = true});
  return std::sqrt(square(gradients[0]).sum().item<float>());
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    const Tensor output = ddp(rank_batch(context));
    const Tensor likeness = loss_of(output - 1.0);
    const Tensor opinion = mean(abs(output));
    const double share = norm_at(likeness, net->b->weight) / (norm_at(opinion, net->b->weight) + 1e-4);
    (likeness + opinion * share).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-25",
                         .title = "a graph kept for the weight between two losses",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace graph_kept_for_a_weight
}  // namespace brigade::lab
