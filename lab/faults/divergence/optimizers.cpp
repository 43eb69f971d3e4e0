// In these programs the ranks take different optimizer steps after their gradients were averaged.
#include <brigade/dist/ddp/join.h>
#include <brigade/lab/faults/fault.h>
#include <brigade/lab/faults/models.h>

#include <optional>
#include <utility>

namespace brigade::lab {

// DIV-13: a gradient is changed on rank 1 after it was averaged.
namespace gradient_changed_after_reduction {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  loss_of(ddp(rank_batch(context))).backward();
  if (context.rank() == 1 || context.fixed) net->a->weight.grad().mul_(0.5);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-13",
    .name = "gradient_changed_after_reduction",
    .title = "a gradient edited on rank 1 after the reduction",
    .expected =
        {.kind = "gradients_edited", .parameters = {"a.weight"}, .ranks = {1}, .cause = "edited_by_hand", .op = "mul_"},
    .run = &run});

}  // namespace gradient_changed_after_reduction

// DIV-14: rank 1 leaves out a step (a local test for NaN).
namespace step_left_out {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    const bool skip = step == 1 && (context.rank() == 1 || context.fixed);
    if (!skip) optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-14",
                         .name = "step_left_out",
                         .title = "rank 1 skips an optimizer step",
                         .expected = {.kind = "collective_mismatch", .ranks = {1}, .cause = "collective_differs"},
                         .run = &run});

}  // namespace step_left_out

// DIV-15: a scheduler lowers the learning rate by the local loss.
namespace learning_rate_by_local_loss {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
    // On rank 1 alone the loss has reached a plateau.
    const bool plateau = step == 1 && (context.rank() == 1 || context.fixed);
    if (plateau) optimizer.options().lr *= 0.1;
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-15",
    .name = "learning_rate_by_local_loss",
    .title = "a scheduler stepped with the local loss",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "options_differ", .op = "lr of group 0"},
    .run = &run});

}  // namespace learning_rate_by_local_loss

// DIV-23: rank 1 alone loads the state of its optimizer.
namespace optimizer_state_on_one_rank {

optim::OptimizerState copy_of(optim::OptimizerState state) {
  for (auto& [name, tensor] : state.tensors)
    tensor = tensor.clone();
  return state;
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  optim::Adam optimizer(net->parameters(), {.lr = 0.1});
  const auto train = [&] {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  };
  train();
  const optim::OptimizerState saved = copy_of(optimizer.state_dict());
  train();
  if (context.rank() == 1 || context.fixed) optimizer.load_state_dict(saved);
  train();
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-23",
    .name = "optimizer_state_on_one_rank",
    .title = "the state of an optimizer loaded on rank 1 only",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "values_differ", .op = "load_state_dict"},
    .run = &run});

}  // namespace optimizer_state_on_one_rank

// DIV-25: rank 1 alone clips the averaged gradients, where they are no views of the buckets.
namespace clipped_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  dist::DDPOptions options = context.options;
  options.gradient_as_bucket_view = false;
  auto ddp = wrap(context, net, options);
  loss_of(ddp(rank_batch(context))).backward();
  if (context.rank() == 1 || context.fixed) optim::clip_grad_norm_(net->parameters(), 0.01);
  sgd_step(net->parameters());
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-25",
                         .name = "clipped_on_one_rank",
                         .title = "gradients clipped on rank 1 only, gradient_as_bucket_view off",
                         .expected = {.kind = "gradients_edited",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "edited_by_hand",
                                      .op = "clip_grad_norm_"},
                         .run = &run});

}  // namespace clipped_on_one_rank

// DIV-26: Adam goes on after a join in which rank 1 had a batch less: its moments are not those of the others.
namespace adam_after_uneven_join {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  std::optional<optim::Adam> optimizer;
  optimizer.emplace(net->parameters(), optim::AdamOptions{.lr = 0.1});
  const auto train = [&] {
    optimizer->zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer->step();
  };
  for (int epoch = 0; epoch < 2; ++epoch) {
    dist::Join join(ddp);
    for (int batch = 0; batch < (context.rank() == 1 ? 2 : 3); ++batch)
      train();
    join.finish();
    if (context.fixed) optimizer.emplace(net->parameters(), optim::AdamOptions{.lr = 0.1});
  }
  train();  // on the last batches of all
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-26",
                         .name = "adam_after_uneven_join",
                         .title = "Adam goes on after an uneven join",
                         .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "steps_differ"},
                         .run = &run});

}  // namespace adam_after_uneven_join

// DIV-30: rank 1 reads another name of an optimizer than the others, from a file of its own.
namespace other_optimizer_on_one_rank {

void train(const FaultContext& context, dist::DistributedDataParallel<Chain>& ddp, optim::Optimizer& optimizer) {
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    optimizer.step();
  }
}

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  if (context.rank() == 1 && !context.fixed) {
    context.fault_on_next_line();
    optim::AdamW optimizer(net->parameters(), {.lr = 0.1});
    train(context, ddp, optimizer);
  } else {
    context.fault_on_next_line();
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    train(context, ddp, optimizer);
  }
  return net->parameters();
}

const AddFault add(Fault{
    .id = "DIV-30",
    .name = "other_optimizer_on_one_rank",
    .title = "an optimizer of another class on rank 1",
    .expected = {.kind = "optimizers_differ", .ranks = {1}, .cause = "options_differ", .op = "optimizer"},
    .run = &run});

}  // namespace other_optimizer_on_one_rank

// DIV-31: a rate for each layer, in the order in which a set of names lists them: on rank 1 that is another one.
namespace other_parameter_group_on_one_rank {

std::vector<Tensor> run(const FaultContext& context) {
  Chain net;
  auto ddp = wrap(context, net);
  std::vector<std::string> names = {"a", "b"};
  if (context.rank() == 1 && !context.fixed) std::swap(names[0], names[1]);
  std::vector<optim::SGD::Group> groups;
  double rate = 0.01;
  for (const std::string& name : names) {
    groups.push_back({(name == "a" ? net->a : net->b)->parameters(), {.lr = rate}});
    rate *= 10;
  }
  optim::SGD optimizer(groups);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    loss_of(ddp(rank_batch(context))).backward();
    context.fault_on_next_line();
    optimizer.step();
  }
  return net->parameters();
}

const AddFault add(Fault{.id = "DIV-31",
                         .name = "other_parameter_group_on_one_rank",
                         .title = "layers in other groups of the optimizer on rank 1, with other rates",
                         .expected = {.kind = "optimizers_differ",
                                      .parameters = {"a.weight", "b.weight"},
                                      .ranks = {1},
                                      .cause = "options_differ",
                                      .op = "parameter groups"},
                         .run = &run});

}  // namespace other_parameter_group_on_one_rank

}  // namespace brigade::lab
