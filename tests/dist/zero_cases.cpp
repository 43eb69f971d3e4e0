#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::test::zero_cases {
using optim::OptimizerState;

using Net = BranchingNet;
using Ddp = dist::DistributedDataParallel<Net>;

constexpr int kSteps = 5;

void backward(Ddp& ddp, int rank, int step) {
  RandomGenerator generator(100 + 7 * static_cast<uint64_t>(rank) + 31 * static_cast<uint64_t>(step));
  mean(square(ddp(randn({5, 4}, kFloat32, &generator)) - 1.0)).backward();
}

template <class Optimizer>
void train_step(Optimizer& optimizer, Ddp& ddp, int rank, int step) {
  optimizer.zero_grad();
  backward(ddp, rank, step);
  optimizer.step();
}

// "" when both hold the same entries in the same order with the same bits.
std::string compare(const OptimizerState& found, const OptimizerState& expected) {
  if (found.optimizer != expected.optimizer) return "the state is of " + found.optimizer;
  if (found.numbers != expected.numbers) return "numbers";
  if (found.tensors.size() != expected.tensors.size())
    return fmt::format("{} tensors, expected {}", found.tensors.size(), expected.tensors.size());
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    const auto& [name, tensor] = expected.tensors[i];
    if (found.tensors[i].first != name) return fmt::format("{} in the place of {}", found.tensors[i].first, name);
    const Tensor& other = found.tensors[i].second;
    if (other.sizes() != tensor.sizes() || other.dtype() != tensor.dtype() || bits_of({other}) != bits_of({tensor}))
      return "the values of " + name;
  }
  return "";
}

std::string versions_of(const std::vector<Tensor>& tensors) {
  std::string text;
  for (const Tensor& tensor : tensors)
    text += std::to_string(tensor.version()) + " ";
  return text;
}

// Makes both nets equal in values and versions.
void make_equal(Net& a, Net& b) {
  const Net from;
  a->load_state_dict(from->state_dict());
  b->load_state_dict(from->state_dict());
}

// Two groups with options of their own.
template <class Optimizer>
std::vector<typename Optimizer::Group> groups_of(Net& net, decltype(Optimizer::Group::options) options) {
  auto slow = options;
  slow.lr /= 10;
  return {{net->a->parameters(), options}, {{net->b->weight, net->b->bias, net->c->weight, net->c->bias}, slow}};
}

template <class Optimizer>
std::string equals_plain(const dist::ProcessGroupPtr& group, const decltype(Optimizer::Group::options)& options) {
  manual_seed(1);
  Net plain_net, net;
  make_equal(plain_net, net);
  Ddp plain_ddp(plain_net, group), ddp(net, group);
  Optimizer plain(groups_of<Optimizer>(plain_net, options));
  dist::ZeroRedundancyOptimizer<Optimizer> zero(groups_of<Optimizer>(net, options), group);
  if (zero.options_text() != plain.options_text()) return zero.options_text();
  for (int s = 0; s < kSteps; ++s) {
    if (s == 3) plain.options(1).lr = zero.options(1).lr = 0.03;  // concerns owners of the second group only
    train_step(plain, plain_ddp, group->rank(), s);
    train_step(zero, ddp, group->rank(), s);
    if (bits_of(net->parameters()) != bits_of(plain_net->parameters()))
      return fmt::format("other bits than the plain optimizer after step {}", s);
  }
  if (versions_of(net->parameters()) != versions_of(plain_net->parameters())) return "versions";
  // The state, on the last rank.
  const int to = group->size() - 1;
  zero.consolidate_state_dict(to);
  if (group->rank() != to)
    return expect_error<DistError>([&] { zero.state_dict(); }, {"call consolidate_state_dict(to) on every rank"});
  return compare(zero.state_dict(), plain.state_dict());
}

template <class Optimizer>
std::string reloaded(const dist::ProcessGroupPtr& group, const decltype(Optimizer::Group::options)& options) {
  using Zero = dist::ZeroRedundancyOptimizer<Optimizer>;
  manual_seed(1);
  Net plain_net, net;
  make_equal(plain_net, net);
  Ddp plain_ddp(plain_net, group), ddp(net, group);
  Optimizer plain(plain_net->parameters(), options);
  Zero zero(net->parameters(), options, group);
  for (int s = 0; s < kSteps; ++s) {
    train_step(plain, plain_ddp, group->rank(), s);
    train_step(zero, ddp, group->rank(), s);
  }
  // Each rank in turn gathers, and then all have the state.
  const OptimizerState saved = plain.state_dict();
  for (int to = 0; to < group->size(); ++to)
    zero.consolidate_state_dict(to);
  const std::string wrong = compare(zero.state_dict(), saved);
  if (!wrong.empty()) return wrong;
  // The plain optimizer loads it, and so does another sharded one.
  Optimizer back(plain_net->parameters(), {.lr = 7});
  back.load_state_dict(zero.state_dict());
  Zero second(net->parameters(), {.lr = 7}, group);
  second.load_state_dict(zero.state_dict());
  if (back.options().lr != options.lr || second.options().lr != options.lr) return "the learning rate was not loaded";
  for (int s = kSteps; s < 2 * kSteps; ++s) {
    train_step(back, plain_ddp, group->rank(), s);
    train_step(second, ddp, group->rank(), s);
    if (bits_of(net->parameters()) != bits_of(plain_net->parameters()))
      return fmt::format("other bits than the plain optimizer after loading and step {}", s);
  }
  // What was consolidated is a copy; a step makes it out of date.
  second.consolidate_state_dict(0);
  if (group->rank() == 0) {
    const std::string now = compare(second.state_dict(), back.state_dict());
    if (!now.empty()) return now;
  }
  train_step(second, ddp, group->rank(), 99);
  return expect_error<DistError>([&] { second.state_dict(); }, {"since the last step"});
}

void check_zero_equals_plain(const std::string& backend, int ranks) {
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
    return equals_plain<optim::SGD>(group, {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true});
  });
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
    return equals_plain<optim::AdamW>(group, {.lr = 0.01, .amsgrad = true});
  });
}
const AddRankCase add_zero_equals_plain(
    "ZeRO over two groups is the plain optimizer bit for bit, and so is its consolidated state",
    &check_zero_equals_plain);

void check_zero_state_reloaded(const std::string& backend, int ranks) {
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) {
    return reloaded<optim::SGD>(group, {.lr = 0.1, .momentum = 0.9});
  });
  expect_well(backend, ranks,
              [](const dist::ProcessGroupPtr& group) { return reloaded<optim::AdamW>(group, {.lr = 0.01}); });
}
const AddRankCase add_zero_state_reloaded("ZeRO: a consolidated state is reloaded and training goes on bit for bit",
                                          &check_zero_state_reloaded);

void check_zero_shards(const std::string& backend, int ranks) {
  CHECK(dist::assign_owners({zeros({2}), zeros({100}), zeros({50}), zeros({49})}, 2) == std::vector<int>{1, 0, 1, 1});
  CHECK(dist::assign_owners({zeros({5}), zeros({5}), zeros({5}, kFloat64), zeros({5})}, 3) ==
        std::vector<int>{1, 2, 0, 1});
  // One parameter: all ranks but the first own nothing.
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) -> std::string {
    const Tensor parameter = full({3}, 2.0).requires_grad_();
    const Tensor twin = full({3}, 2.0).requires_grad_();
    dist::ZeroRedundancyOptimizer<optim::AdamW> zero({parameter}, {.lr = 0.1}, group);
    optim::AdamW plain({twin}, {.lr = 0.1});
    for (int s = 0; s < kSteps; ++s) {
      parameter.set_grad(full({3}, s - 1.5));
      twin.set_grad(full({3}, s - 1.5));
      zero.step();
      plain.step();
    }
    if (bits_of({parameter}) != bits_of({twin})) return "a parameter that others own";
    zero.consolidate_state_dict();
    if (group->rank() == 0) {
      const std::string wrong = compare(zero.state_dict(), plain.state_dict());
      if (!wrong.empty()) return wrong;
    }
    zero.load_state_dict(plain.state_dict());
    zero.zero_grad();
    return parameter.grad().defined() ? "zero_grad left a gradient on a rank that does not own it" : "";
  });
  // A frozen parameter, and one that no rank uses, stay, as with the plain optimizer; the state has no entry for them.
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) -> std::string {
    manual_seed(1);
    Net plain_net, net;
    make_equal(plain_net, net);
    for (Net each : {plain_net, net}) {
      each->a->weight.requires_grad_(false);
      each->skip_b = true;
    }
    const dist::DDPOptions unused{.find_unused_parameters = true};
    Ddp plain_ddp(plain_net, group, unused), ddp(net, group, unused);
    optim::AdamW plain(plain_net->parameters(), {.lr = 0.1});
    dist::ZeroRedundancyOptimizer<optim::AdamW> zero(net->parameters(), {.lr = 0.1}, group);
    const std::string frozen = bits_of({net->a->weight, net->b->weight});
    for (int s = 0; s < kSteps; ++s) {
      train_step(plain, plain_ddp, group->rank(), s);
      train_step(zero, ddp, group->rank(), s);
    }
    if (bits_of(net->parameters()) != bits_of(plain_net->parameters())) return "other bits than the plain optimizer";
    if (versions_of(net->parameters()) != versions_of(plain_net->parameters())) return "versions";
    if (bits_of({net->a->weight, net->b->weight}) != frozen) return "a frozen parameter moved";
    return "";
  });
  // A gradient on one rank alone (without a wrapper, which would refuse the step): the owner's counts.
  expect_well(backend, ranks, [](const dist::ProcessGroupPtr& group) -> std::string {
    const Tensor large = ones({5}).requires_grad_(), small = ones({2}).requires_grad_();
    dist::ZeroRedundancyOptimizer<optim::SGD> zero({large, small}, {.lr = 0.5}, group);
    if (zero.owners() != std::vector<int>{0, 1}) return "owners";
    if (group->rank() == 1) {
      large.set_grad(ones({5}));
      small.set_grad(ones({2}));
    }
    zero.step();
    return large.to_vector<double>() == std::vector<double>(5, 1) &&
                   small.to_vector<double>() == std::vector<double>(2, 0.5)
               ? ""
               : "not as the owners have it";
  });
}
const AddRankCase add_zero_shards(
    "ZeRO: ranks without parameters, frozen and unused parameters, a gradient on one rank alone", &check_zero_shards);

std::string check_zero_large_state(const dist::ProcessGroupPtr& group) {
  // States of more than one piece (25 MiB), of several dtypes; the values encode their positions.
  std::vector<Tensor> parameters{zeros({4'000'001}).requires_grad_(), zeros({3}, kFloat64).requires_grad_(),
                                 zeros({1'000'000}).requires_grad_(), zeros({7}, kBFloat16).requires_grad_()};
  dist::ZeroRedundancyOptimizer<optim::Adam> zero(parameters, {.lr = 0.1, .betas = {0.5, 0.5}}, group);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const Tensor grad = arange(0, static_cast<double>(parameters[i].numel())).to(parameters[i].dtype());
    parameters[i].set_grad(grad + static_cast<double>(i));
  }
  zero.step();
  zero.consolidate_state_dict(1);
  if (group->rank() != 1) return "";
  optim::Adam plain(parameters, {.lr = 0.1, .betas = {0.5, 0.5}});
  plain.step();
  return compare(zero.state_dict(), plain.state_dict());
}
const AddRankCase add_zero_large_state("ZeRO: a state of several pieces and dtypes arrives whole",
                                       &check_zero_large_state, {.threads = {}, .shm = {2}, .others = {2}});

std::string check_zero_refusals(const dist::ProcessGroupPtr& group) {
  using Zero = dist::ZeroRedundancyOptimizer<optim::SGD>;
  const bool odd = group->rank() == 1;
  std::vector<std::string> wrong;
  const Tensor first = ones({3}), second = ones({4, 2});
  wrong.push_back(expect_error<DistError>(
      [&] {
        Zero({first, odd ? ones({5}) : second}, {.lr = 0.1}, group);
      },
      {"rank 0 has parameter 1: float32 [4, 2], rank 1 has parameter 1: float32 [5]", "zero_cases.cpp:"}));
  wrong.push_back(expect_error<DistError>(
      [&] {
        Zero({first, second}, {.lr = odd ? 0.2 : 0.1}, group);
      },
      {"lr 0.1", "rank 1 has options of group 0: lr 0.2"}));
  wrong.push_back(expect_error<ValueError>([&] { Zero({first}, {.lr = -1}, group); }, {"Invalid learning rate: -1"}));
  wrong.push_back(expect_error<ValueError>(
      [&] {
        Zero({first, first}, {.lr = 1}, group);
      },
      {"some parameters appear in more than one parameter group"}));
  wrong.push_back(expect_error<ValueError>([&] { Zero({first}, {.lr = 1}, nullptr); }, {"the process group is empty"}));

  Zero zero({first, second}, {.lr = 0.1, .momentum = 0.9}, group);
  wrong.push_back(expect_error<ValueError>([&] { zero.consolidate_state_dict(group->size()); }, {"is not a rank 0.."}));
  // What one rank refuses, all refuse, and nothing has changed.
  const Tensor other_first = ones({3}), other_second = ones({4, 3});
  optim::SGD other({other_first, other_second}, {.lr = 0.5, .momentum = 0.9});
  for (const Tensor& each : {first, second, other_first, other_second})
    each.set_grad(ones(each.sizes()));
  zero.step();
  other.step();
  wrong.push_back(
      expect_error<ValueError>([&] { zero.load_state_dict(other.state_dict()); }, {"'1.momentum_buffer' is float32"}));
  optim::SGD fewer({other_first}, {.lr = 0.5});
  wrong.push_back(
      expect_error<ValueError>([&] { zero.load_state_dict(fewer.state_dict()); }, {"doesn't match the size"}));
  optim::AdamW kind({other_first}, {.lr = 0.5});
  wrong.push_back(
      expect_error<ValueError>([&] { zero.load_state_dict(kind.state_dict()); }, {"it was saved from AdamW"}));
  if (zero.options().lr != 0.1) wrong.emplace_back("the options of a refused state were taken");
  zero.step();
  // 1 - 0.1 * (1 + 1.9): with the momentum of the first step.
  for (const Tensor& each : {first, second}) {
    if (std::abs(each.to_vector<double>()[0] - 0.71) > 1e-6) wrong.emplace_back("the state after a refused one");
  }
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}
const AddRankCase add_zero_refusals(
    "ZeRO: ranks that differ, options and states that do not fit are refused on every rank", &check_zero_refusals);

}  // namespace brigade::test::zero_cases
