// Whatever trains over a process group also trains over a subgroup: each half of the world by itself.
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/autograd/ops/shape.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/dist/fabric/fabric.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>

namespace brigade::test::new_group_training_cases {
using dist::ProcessGroupPtr;

const Sizes kSizes = everywhere({4}, {"ABAB"});

Tensor batch_of(int rank, int step = 0) {
  RandomGenerator generator(50 + static_cast<uint64_t>(10 * step + rank));
  return randn({5, 4}, kFloat64, &generator) + static_cast<double>(rank);
}

// The pair {0, 1} or {2, 3} that this rank belongs to.
ProcessGroupPtr own_pair(const ProcessGroupPtr& group) {
  const ProcessGroupPtr low = dist::new_group(group, {0, 1});
  const ProcessGroupPtr high = dist::new_group(group, {2, 3});
  return group->rank() < 2 ? low : high;
}

nn::Linear make_net(uint64_t seed) {
  manual_seed(seed);
  return nn::Linear(nn::LinearOptions{.in_features = 4, .out_features = 3, .dtype = kFloat64});
}

Tensor loss_of(const Tensor& y) { return mean(square(y - 1.0)); }

// The parameters after `steps` steps of Adam in one process on the batches of both ranks of a pair.
std::vector<Tensor> trained_alone(int first, int steps, uint64_t seed) {
  nn::Linear net = make_net(seed);
  optim::Adam adam(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < steps; ++step) {
    adam.zero_grad();
    ((loss_of(net(batch_of(first, step))) + loss_of(net(batch_of(first + 1, step)))) * 0.5).backward();
    adam.step();
  }
  return net->parameters();
}

std::string close(const std::string& what, const std::vector<Tensor>& found, const std::vector<Tensor>& expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto a = found[i].to_vector<double>();
    const auto b = expected[i].to_vector<double>();
    for (size_t j = 0; j < b.size(); ++j) {
      if (!(std::abs(a[j] - b[j]) <= 1e-12 * std::max(1.0, std::abs(b[j]))))
        return fmt::format("{}: tensor {}, element {} is {}, expected {}", what, i, j, a[j], b[j]);
    }
  }
  return "";
}

template <class MakeOptimizer>
std::string trains_as_alone(const ProcessGroupPtr& group, const MakeOptimizer& make) {
  const int first = group->rank() / 2 * 2;
  const ProcessGroupPtr pair = own_pair(group);
  // Each pair starts from the values of its first rank.
  nn::Linear net = make_net(static_cast<uint64_t>(7 + group->rank()));
  dist::DistributedDataParallel<nn::Linear> ddp(net, pair);
  const auto optimizer = make(net->parameters(), pair);
  for (int step = 0; step < 3; ++step) {
    optimizer->zero_grad();
    loss_of(ddp(batch_of(group->rank(), step))).backward();
    optimizer->step();
  }
  return close("weights", net->parameters(), trained_alone(first, 3, static_cast<uint64_t>(7 + first)));
}

std::string ddp_over_pairs(const ProcessGroupPtr& group) {
  return trains_as_alone(group, [](const std::vector<Tensor>& parameters, const ProcessGroupPtr&) {
    return std::make_unique<optim::Adam>(parameters, optim::AdamOptions{.lr = 0.01});
  });
}
const AddRankCase add_ddp("DDP over two disjoint subgroups: gradients are averaged inside each only", &ddp_over_pairs,
                          kSizes);

std::string zero_over_pairs(const ProcessGroupPtr& group) {
  return trains_as_alone(group, [](const std::vector<Tensor>& parameters, const ProcessGroupPtr& pair) {
    return std::make_unique<dist::ZeroRedundancyOptimizer<optim::Adam>>(parameters, optim::AdamOptions{.lr = 0.01},
                                                                        pair);
  });
}
const AddRankCase add_zero("ZeroRedundancyOptimizer over a subgroup", &zero_over_pairs, kSizes);

std::string fabric_over_pairs(const ProcessGroupPtr& group) {
  const int first = group->rank() / 2 * 2;
  dist::Fabric fabric({.accelerator = "cpu", .precision = "64-true"}, own_pair(group));
  if (fabric.world_size() != 2 || fabric.global_rank() != group->rank() % 2) return "ranks";
  nn::Linear net = make_net(static_cast<uint64_t>(7 + group->rank()));
  optim::Adam adam(net->parameters(), {.lr = 0.01});
  auto [model, optimizer] = fabric.setup(net, adam);
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    fabric.backward(loss_of(model(batch_of(group->rank(), step))));
    optimizer.step();
  }
  if (fabric.all_reduce(static_cast<double>(group->rank()), dist::ReduceOp::Sum) != 2 * first + 1) return "all_reduce";
  return close("weights", net->parameters(), trained_alone(first, 3, static_cast<uint64_t>(7 + first)));
}
const AddRankCase add_fabric("a Fabric over a subgroup", &fabric_over_pairs, kSizes);

std::string batch_norm_over_pairs(const ProcessGroupPtr& group) {
  const int first = group->rank() / 2 * 2;
  dist::SyncBatchNorm norm(4, own_pair(group), {.dtype = kFloat64});
  nn::BatchNorm1d alone(4, nn::BatchNormOptions{.dtype = kFloat64});
  const Tensor y = norm(batch_of(group->rank()));
  const Tensor expected = alone(cat({batch_of(first), batch_of(first + 1)}, 0));
  const int64_t from = 5 * (group->rank() % 2);
  return close("output", {y.contiguous()}, {expected.slice(0, from, from + 5).contiguous()});
}
const AddRankCase add_batch_norm("SyncBatchNorm over a subgroup has the statistics of its ranks",
                                 &batch_norm_over_pairs, kSizes);

std::string refuses_non_members(const ProcessGroupPtr& pair, int rank, const std::string& members) {
  const std::vector<std::string> parts{fmt::format("rank {} is not a member of the group of ranks {} ", rank, members),
                                       "new_group_training_cases.cpp:"};
  nn::Linear net = make_net(1);
  const auto wrap = [&] { dist::DistributedDataParallel<nn::Linear>(net, pair); };
  const auto share = [&] { dist::ZeroRedundancyOptimizer<optim::Adam>(net->parameters(), {.lr = 0.01}, pair); };
  const auto normalise = [&] { dist::SyncBatchNorm(4, pair, nn::BatchNormOptions{.dtype = kFloat64})(batch_of(0)); };
  const auto set_up = [&] { dist::Fabric({.accelerator = "cpu", .precision = "64-true"}, pair).setup(net); };
  for (const std::function<void()>& use : std::vector<std::function<void()>>{wrap, share, normalise, set_up}) {
    if (const std::string wrong = expect_error<DistError>(use, parts); !wrong.empty()) return wrong;
  }
  return "";
}

std::string refuse_non_members(const ProcessGroupPtr& group) {
  const std::vector<std::string> members{"0", "0, 1"};  // also of a group of one
  const ProcessGroupPtr groups[] = {dist::new_group(group, {0}), dist::new_group(group, {0, 1})};
  if (group->rank() < 2) return "";
  for (size_t i = 0; i < 2; ++i) {
    const std::string wrong = refuses_non_members(groups[i], group->rank(), members[i]);
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_refuses("wrappers, ZeRO, SyncBatchNorm and Fabric say who is no member", &refuse_non_members,
                              kSizes);

// Rank 3, which is rank 1 of its pair, does not use the layer.
std::string errors_speak_of_global_ranks(const ProcessGroupPtr& group) {
  const ProcessGroupPtr pair = own_pair(group);
  struct TwoImpl : nn::Module {
    nn::Linear a{nullptr}, b{nullptr};
    bool skips = false;
    TwoImpl() {
      a = register_module("a", make_net(1));
      b = register_module("b", make_net(2));
    }
    Tensor forward(const Tensor& x) { return skips ? a(x) : a(x) + b(x); }
  };
  nn::ModuleHolder<TwoImpl> net;
  net->skips = group->rank() == 3;
  dist::DistributedDataParallel<nn::ModuleHolder<TwoImpl>> ddp(net, pair);
  const auto backward = [&] { loss_of(ddp(batch_of(group->rank()))).backward(); };
  if (group->rank() < 2) {
    backward();
    return "";
  }
  return expect_error<dist::ReductionError>(
      backward,
      {"on rank 1, in backward", "Ranks are those of this process group: 0 is global rank 2, 1 is global rank 3"});
}
const AddRankCase add_errors("a backward's error on a subgroup says which global ranks its ranks are",
                             &errors_speak_of_global_ranks, kSizes);

std::string differences_speak_of_global_ranks(const ProcessGroupPtr& group) {
  const ProcessGroupPtr pair = own_pair(group);
  const nn::Linear net = make_net(static_cast<uint64_t>(1 + group->rank() % 2));
  const dist::ConsistencyReport found = dist::verify_consistency(*pair, net);
  const dist::ConsistencyReport in_all = dist::verify_consistency(*group, net);
  const std::vector<std::string> parts{
      "rank 1", group->rank() < 2 ? "differ between the ranks"
                                  : "Ranks are those of this process group: 0 is global rank 2, 1 is "
                                    "global rank 3"};
  const std::string wrong = expect_error<dist::ConsistencyError>([&] { found.raise_if_inconsistent(); }, parts);
  if (!wrong.empty()) return wrong;
  if (group->rank() < 2 && !found.legend.empty()) return "a legend where numbers are the same: " + found.legend;
  return in_all.legend.empty() ? "" : "a legend in the group of all: " + in_all.legend;
}
const AddRankCase add_differences("what verify_consistency says of a subgroup says which global ranks its ranks are",
                                  &differences_speak_of_global_ranks, kSizes);

}  // namespace brigade::test::new_group_training_cases
