// The step after an uneven join: which optimizers can continue, and what the ranks hold then.
#include "join_net.h"
#include "rank_case.h"

#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/join.h>

#include <memory>

namespace brigade::test::after_join_cases {
using namespace joining;  // NOLINT: the file is about it

void check_sgd_after_join(const std::string& backend, int ranks) {
  Net one = seeded_net();
  optim::SGD plain(one->parameters(), {.lr = 0.1});
  train_reference(one, plain, ranks);
  // One more step with the gradients of the last batch, then steps on batches of all ranks.
  plain.step();
  for (int s = 0; s < 3; ++s) {
    plain.zero_grad();
    for (int r = 0; r < ranks; ++r)
      (loss_of(one(batch_of(r, s + 20))) / static_cast<double>(ranks)).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  for (const bool views : {true, false}) {
    CAPTURE(views);
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      Net net = seeded_net();
      Ddp ddp(net, group, {.gradient_as_bucket_view = views, .verify_every = 2});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      dist::Join join(ddp);
      for (int s = 0; s < batches_of(group->rank()); ++s)
        train_step(ddp, optimizer, group->rank(), s);
      join.finish();
      const dist::ConsistencyReport report = dist::verify_consistency(*group, net);
      if (!report.consistent()) return report.verdicts.front().message;
      optimizer.step();
      for (int s = 0; s < 3; ++s)
        train_step(ddp, optimizer, group->rank(), s + 20);
      return compare(values_of(net->parameters()), expected);
    });
  }
}
const AddRankCase add_sgd_after_join("join: plain SGD steps after an uneven join, as in one process",
                                     &check_sgd_after_join, everywhere({2, 3}));

std::string check_cleared_gradients(const dist::ProcessGroupPtr& group) {
  Net net = seeded_net();
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  dist::Join join(ddp);
  for (int s = 0; s < batches_of(group->rank()); ++s) {
    train_step(ddp, optimizer, group->rank(), s);
    optimizer.zero_grad();
  }
  join.finish();
  if (!dist::verify_consistency(*group, net).consistent()) return "gradients of shadows differ from those of others";
  return net->a->weight.grad().defined() ? "the last rank has cleared its gradients, and a shadow holds some" : "";
}
const AddRankCase add_cleared_gradients("join: gradients that the last rank has cleared or edited are so on all",
                                        &check_cleared_gradients, everywhere({3}));

template <class Optimizer, class Options>
std::string refused_after_join(const dist::ProcessGroupPtr& group, const Options& options, const std::string& name) {
  Net net = seeded_net();
  Ddp ddp(net, group);
  Optimizer optimizer(net->parameters(), options);
  {
    dist::Join join(ddp);
    for (int s = 0; s < batches_of(group->rank()); ++s)
      train_step(ddp, optimizer, group->rank(), s);
    join.finish();
  }
  const Values before = values_of(net->parameters());
  const std::string wrong =
      expect_error<dist::ConsistencyError>([&] { train_step(ddp, optimizer, group->rank(), 30); },
                                           {name + " keeps state", "join", "rank 0 took 1 steps, rank 1 took 2 steps",
                                            "ZeroRedundancyOptimizer", "brigade explain optimizers_differ"});
  if (!wrong.empty()) return wrong;
  if (values_of(net->parameters()) != before) return "a refused step moved something";
  // A new optimizer works.
  Optimizer fresh(net->parameters(), options);
  train_step(ddp, fresh, group->rank(), 31);
  return dist::verify_consistency(*group, net).consistent() ? "" : "the step of a new optimizer";
}
const AddRankCase add_adam_after_join(
    "join: an optimizer that keeps state and has stepped less often on some ranks is refused with the reason",
    Body([](dist::ProcessGroupPtr group) -> std::string {
      const std::string wrong = refused_after_join<optim::Adam>(group, optim::AdamOptions{.lr = 0.1}, "Adam");
      if (!wrong.empty()) return "Adam: " + wrong;
      return refused_after_join<optim::SGD>(group, optim::SGDOptions{.lr = 0.1, .momentum = 0.9}, "SGD");
    }),
    everywhere({2, 3}));

// After an uneven join, all ranks or only the last one load the optimizer state from before the join.
std::string loaded_after_join(const dist::ProcessGroupPtr& group, bool on_all) {
  Net net = seeded_net();
  Ddp ddp(net, group);
  optim::Adam optimizer(net->parameters(), {.lr = 0.1});
  train_step(ddp, optimizer, group->rank(), 0);
  optim::OptimizerState saved = optimizer.state_dict();
  for (auto& [name, tensor] : saved.tensors)
    tensor = tensor.clone();
  {
    dist::Join join(ddp);
    for (int s = 0; s < batches_of(group->rank()); ++s)
      train_step(ddp, optimizer, group->rank(), s);
    join.finish();
  }
  const auto go_on = [&] {
    if (on_all || group->rank() == group->size() - 1) optimizer.load_state_dict(saved);
    for (int s = 0; s < 3; ++s)
      train_step(ddp, optimizer, group->rank(), s + 30);
  };
  if (!on_all)
    return expect_error<dist::ConsistencyError>(go_on,
                                                {"Adam keeps state", "rank 0 took 2 steps, rank 1 took 3 steps"});
  go_on();
  return dist::verify_consistency(*group, net).consistent() ? "" : "the models differ";
}
const AddRankCase add_loaded_after_join(
    "join: an optimizer that has stepped less often on some ranks goes on where all have loaded one state since",
    Body([](dist::ProcessGroupPtr group) -> std::string {
      const std::string wrong = loaded_after_join(group, true);
      return wrong.empty() ? loaded_after_join(group, false) : wrong;
    }),
    everywhere({2, 3}));

// Two epochs, each in a join of its own.
template <class Optimizer, class Options>
std::string second_epoch_in_join(const dist::ProcessGroupPtr& group, const Options& options, bool renews) {
  Net net = seeded_net();
  Ddp ddp(net, group);
  auto optimizer = std::make_unique<Optimizer>(net->parameters(), options);
  for (int epoch = 0; epoch < 2; ++epoch) {
    dist::Join join(ddp);
    if (epoch > 0 && renews) optimizer = std::make_unique<Optimizer>(net->parameters(), options);
    for (int s = 0; s < batches_of(group->rank()); ++s)
      train_step(ddp, *optimizer, group->rank(), 10 * epoch + s);
    join.finish();
  }
  return dist::verify_consistency(*group, net).consistent() ? "" : "after two joins";
}
std::string check_second_join(const dist::ProcessGroupPtr& group) {
  const optim::AdamOptions adam{.lr = 0.1};
  std::string wrong = second_epoch_in_join<optim::SGD>(group, optim::SGDOptions{.lr = 0.1}, false);
  if (wrong.empty()) wrong = second_epoch_in_join<optim::Adam>(group, adam, true);
  if (!wrong.empty()) return wrong;
  return expect_error<dist::ConsistencyError>([&] { second_epoch_in_join<optim::Adam>(group, adam, false); },
                                              {"Adam keeps state", "rank 0 took 1 steps, rank 1 took 2 steps",
                                               "make a new optimizer on every rank after the join"});
}
const AddRankCase add_second_join("join: the next join refuses Adam as a step outside does, and not a new one, or SGD",
                                  &check_second_join, everywhere({2, 3}));

std::string check_adam_after_even_join(const dist::ProcessGroupPtr& group) {
  Net net = seeded_net();
  Ddp ddp(net, group);
  optim::Adam optimizer(net->parameters(), {.lr = 0.1});
  dist::Join join(ddp);
  for (int s = 0; s < 2; ++s)
    train_step(ddp, optimizer, group->rank(), s);
  join.finish();
  train_step(ddp, optimizer, group->rank(), 2);
  return dist::verify_consistency(*group, net).consistent() ? "" : "after an even join";
}
const AddRankCase add_adam_after_even_join("join: Adam goes on after a join that was even", &check_adam_after_even_join,
                                           everywhere({2}));

}  // namespace brigade::test::after_join_cases
