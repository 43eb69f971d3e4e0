// These controls build an unusual graph or loss, and its gradients are right.
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <cmath>

namespace brigade::lab {

// OK-06: an output that is not used, find_unused_parameters on.
namespace output_not_used {

std::vector<Tensor> run(const FaultContext& context) {
  Heads net;
  auto ddp = wrap(context, net, context.find_unused());
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context)).first).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-06",
                         .name = "output_not_used",
                         .title = "an unused output, find_unused_parameters on",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace output_not_used

// OK-13: a checkpoint of a module that is used outside of it as well.
namespace checkpointed_module_used_elsewhere {

struct SharedImpl : PairImpl {
  Tensor forward(const Tensor& x) {
    return b(a(autograd::checkpoint([this](const Tensor& in) { return relu(a(in)); }, x)));
  }
};
BRIGADE_MODULE(Shared);

std::vector<Tensor> run(const FaultContext& context) {
  Shared net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    loss_of(ddp(rank_batch(context))).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-13",
                         .name = "checkpointed_module_used_elsewhere",
                         .title = "checkpoint of a shared module",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace checkpointed_module_used_elsewhere

// OK-16: deep supervision: the weights of the losses are a buffer, all outputs are in the loss.
namespace deep_supervision {

struct SupervisedImpl : HeadsImpl {
  Tensor weights;
  SupervisedImpl() { weights = register_buffer("weights", tensor<float>({1.0F, 0.5F})); }
};
BRIGADE_MODULE(Supervised);

std::vector<Tensor> run(const FaultContext& context) {
  Supervised net;
  auto ddp = wrap(context, net);
  for (int step = 0; step < 2; ++step) {
    const auto [a, b] = ddp(rank_batch(context));
    const Tensor weights = net->weights;
    (loss_of(a) * weights.select(0, 0) + loss_of(b) * weights.select(0, 1)).backward();
    sgd_step(net->parameters());
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-16",
                         .name = "deep_supervision",
                         .title = "deep supervision with weights in a buffer",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace deep_supervision

// OK-21: gradients are set by hand, from averaged ones: where two tasks conflict, each loses its part along the other
// (Yu and others: "Gradient surgery for multi-task learning", NeurIPS 2020).
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
                         .name = "gradients_projected_by_hand",
                         .title = "averaged gradients of two tasks projected and set by hand",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace gradients_projected_by_hand

// OK-24: batches of other sizes on each rank; the loss is divided by the tokens of all ranks.
namespace loss_by_tokens_of_all_ranks {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const int64_t tokens = 3 + 4 * context.rank();
  for (int step = 0; step < 3; ++step) {
    const Tensor all_tokens = full({1}, static_cast<double>(tokens), {kFloat32, context.device});
    context.group->all_reduce(all_tokens, {.op = dist::ReduceOp::Sum})->wait();
    optimizer.zero_grad();
    const Tensor sum_of_losses = square(ddp(rank_batch(context, tokens))).sum();
    // The wrapper divides by the ranks.
    (sum_of_losses * (context.group->size() / all_tokens.item<float>())).backward();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "OK-24",
                         .name = "loss_by_tokens_of_all_ranks",
                         .title = "uneven batches, the loss divided by the tokens of all ranks",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace loss_by_tokens_of_all_ranks

// OK-25: a graph that has to be kept: the norms of two losses' gradients at the last layer weigh the losses, as in
// VQGAN (Esser, Rombach, Ommer: "Taming transformers for high-resolution image synthesis", CVPR 2021).
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
                         .name = "graph_kept_for_a_weight",
                         .title = "a graph kept for the weight between two losses",
                         .expected = {.detected = false},
                         .run = &run});

}  // namespace graph_kept_for_a_weight

}  // namespace brigade::lab
