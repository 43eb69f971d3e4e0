// Compares ZeRO with the plain optimizer beyond plain steps: schedules, checkpoints, new groups.
#include "core/temporary_folder.h"
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

namespace brigade::test::zero_resume_cases {
constexpr int64_t kEnd = 7;

using MakeScheduler = std::function<std::unique_ptr<optim::LRScheduler>(optim::Optimizer&)>;

std::unique_ptr<optim::LRScheduler> one_cycle(optim::Optimizer& optimizer) {
  return std::make_unique<optim::OneCycleLR>(optimizer, optim::OneCycleOptions{.max_lr = {0.05}, .total_steps = 20});
}
std::unique_ptr<optim::LRScheduler> cosine(optim::Optimizer& optimizer) {
  return std::make_unique<optim::CosineAnnealingLR>(optimizer, 10, 0.001);
}

// A training program; a fresh instance stands for a restarted program. All begin with the same weights.
template <class Optimizer>
struct Program {
  using Net = BranchingNet;

  static Net new_net() {
    manual_seed(1);
    return Net();
  }
  Program(const dist::ProcessGroupPtr& in, std::unique_ptr<Optimizer> (*make)(Net&, const dist::ProcessGroupPtr&),
          const MakeScheduler& schedule)
      : group(in), net(new_net()), ddp(net, group), optimizer(make(net, group)), scheduler(schedule(*optimizer)) {
    checkpoint.module("net", *net).optimizer("optimizer", *optimizer).scheduler("rate", *scheduler);
    checkpoint.number("step", step);
  }

  void backward_and_step() {
    RandomGenerator generator(9 + 7 * static_cast<uint64_t>(group->rank()) + 31 * static_cast<uint64_t>(step));
    optimizer->zero_grad();
    mean(square(ddp(randn({5, 4}, kFloat32, &generator)) - 1.0)).backward();
    optimizer->step();
    ++step;
  }
  void train_until(int64_t end) {
    while (step < end) {
      backward_and_step();
      scheduler->step();
    }
  }
  std::string bits() const { return bits_of(net->parameters()); }

  dist::ProcessGroupPtr group;
  Net net;
  dist::DistributedDataParallel<Net> ddp;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<optim::LRScheduler> scheduler;
  int64_t step = 0;
  optim::Checkpoint checkpoint;
};

template <class Inner>
using Zero = dist::ZeroRedundancyOptimizer<Inner>;

const optim::SGDOptions kSgd{.lr = 0.1, .momentum = 0.9};
const optim::AdamWOptions kAdamW{.lr = 0.01};

template <class Inner>
auto options_of() {
  if constexpr (std::is_same_v<Inner, optim::SGD>) {
    return kSgd;
  } else {
    return kAdamW;
  }
}
template <class Inner>
std::unique_ptr<Inner> plain_over(BranchingNet& net, const dist::ProcessGroupPtr&) {
  return std::make_unique<Inner>(net->parameters(), options_of<Inner>());
}
template <class Inner>
std::unique_ptr<Zero<Inner>> zero_over(BranchingNet& net, const dist::ProcessGroupPtr& group) {
  return std::make_unique<Zero<Inner>>(net->parameters(), options_of<Inner>(), group);
}

template <class Inner>
std::string scheduled(const dist::ProcessGroupPtr& group, const MakeScheduler& schedule) {
  Program<Inner> plain(group, &plain_over<Inner>, schedule);
  Program<Zero<Inner>> zero(group, &zero_over<Inner>, schedule);
  for (int64_t end = 1; end <= kEnd; ++end) {
    plain.train_until(end);
    zero.train_until(end);
    if (zero.optimizer->lr() != plain.optimizer->lr()) return "the rate";
    if (zero.optimizer->momentum() != plain.optimizer->momentum()) return "the momentum";
    if (zero.bits() != plain.bits()) return fmt::format("other bits than the plain optimizer after step {}", end);
  }
  if (zero.optimizer->lr() == zero.optimizer->initial_lr(0)) return "the schedule moved nothing";
  return "";
}
std::string check_schedules(const dist::ProcessGroupPtr& group) {
  for (const MakeScheduler& schedule : {MakeScheduler(one_cycle), MakeScheduler(cosine)}) {
    const std::string sgd = scheduled<optim::SGD>(group, schedule);
    if (!sgd.empty()) return "SGD: " + sgd;
    const std::string adam = scheduled<optim::AdamW>(group, schedule);
    if (!adam.empty()) return "AdamW: " + adam;
  }
  const Tensor parameter = ones({3}).requires_grad_();
  Zero<optim::Adagrad> without({parameter}, {.lr = 0.1}, group);
  if (without.has_momentum()) return "Adagrad has a momentum";
  return expect_error<ValueError>([&] { without.set_momentum(0, 0.5); }, {"has no momentum that could be read or set"});
}
const AddRankCase add_schedules("ZeRO driven by a schedule is the plain optimizer bit for bit", &check_schedules);

template <class Inner>
std::string resumes(const dist::ProcessGroupPtr& group, const std::string& path) {
  using One = Program<Zero<Inner>>;
  One whole(group, &zero_over<Inner>, one_cycle);
  whole.train_until(kEnd);
  {
    One before(group, &zero_over<Inner>, one_cycle);
    before.train_until(3);
    before.backward_and_step();
    // The schedule steps between the two: what is saved is the rate of then.
    before.optimizer->consolidate_state_dict(0);
    before.scheduler->step();
    if (group->rank() == 0) before.checkpoint.save(path);
    group->barrier();
  }
  One after(group, &zero_over<Inner>, one_cycle);
  after.checkpoint.load(path);
  if (after.step != 4) return "the step";
  after.train_until(kEnd);
  if (after.bits() != whole.bits()) return "other bits after a load in a fresh program";
  // Loads again, with nothing consolidated.
  after.checkpoint.load(path);
  after.train_until(kEnd);
  if (after.bits() != whole.bits()) return "other bits after a second load";
  // The plain optimizer takes the same file.
  Program<Inner> plain(group, &plain_over<Inner>, one_cycle);
  plain.checkpoint.load(path);
  plain.train_until(kEnd);
  if (plain.bits() != whole.bits()) return "other bits of the plain optimizer";
  group->barrier();
  return "";
}
void check_resume(const std::string& backend, int ranks) {
  const TemporaryFolder folder;
  const std::string path = folder / "job.safetensors";
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) { return resumes<optim::SGD>(group, path); });
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) { return resumes<optim::AdamW>(group, path); });
}
const AddRankCase add_resume("ZeRO resumes through a checkpoint in a fresh program bit for bit", &check_resume,
                             {.threads = {2, 3, 4}, .shm = {2, 3, 4}, .others = {2, 3}});

// One part of the file does not fit: the optimizer, which had loaded its own part, is restored.
void check_undo(const std::string& backend, int ranks) {
  const TemporaryFolder folder;
  const std::string path = folder / "job.safetensors";
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
    using One = Program<Zero<optim::AdamW>>;
    const auto add_part = [](One& one, bool refuses) {
      one.checkpoint.part(
          "extra",
          [] {
            return optim::OptimizerState{"extra", {}, {}};
          },
          [refuses](const optim::OptimizerState&) {
            if (refuses) throw ValueError("the extra part does not fit");
          });
    };
    One untouched(group, &zero_over<optim::AdamW>, one_cycle);
    untouched.train_until(kEnd);
    One one(group, &zero_over<optim::AdamW>, one_cycle);
    add_part(one, true);
    one.train_until(2);
    one.optimizer->consolidate_state_dict(0);
    if (group->rank() == 0) one.checkpoint.save(path);
    group->barrier();
    one.train_until(4);
    one.optimizer->consolidate_state_dict(0);
    const double rate = one.optimizer->lr();
    const std::string wrong =
        expect_error<ValueError>([&] { one.checkpoint.load(path); }, {"the extra part does not fit"});
    if (!wrong.empty()) return wrong;
    if (one.optimizer->lr() != rate) return "the rate of the refused file was taken";
    if (group->rank() == 0) one.optimizer->state_dict();  // still there
    one.train_until(kEnd);
    group->barrier();
    return one.bits() == untouched.bits() ? "" : "a refused file changed the optimizer";
  });
}
const AddRankCase add_undo("ZeRO is as before when a checkpoint does not fit", &check_undo,
                           {.threads = {2, 3}, .shm = {2, 3}, .others = {2}});

std::string check_groups(const dist::ProcessGroupPtr& group) {
  const auto values = [](int64_t size, uint64_t seed) {
    RandomGenerator generator(seed);
    return randn({size}, kFloat32, &generator);
  };
  const auto new_parameters = [&] {
    std::vector<Tensor> made;
    for (const int64_t size : {5, 3, 40, 2, 7})
      made.push_back(values(size, static_cast<uint64_t>(size)).requires_grad_());
    return made;
  };
  const std::vector<Tensor> own = new_parameters(), twins = new_parameters();
  // One parameter to begin with: the other ranks own nothing yet.
  Zero<optim::AdamW> zero({own[0]}, kAdamW, group);
  optim::AdamW plain({twins[0]}, kAdamW);
  const auto step = [&](int number) {
    for (size_t i = 0; i < own.size(); ++i) {
      for (const Tensor& each : {own[i], twins[i]})
        each.set_grad(values(each.numel(), 100 * static_cast<uint64_t>(number) + i));
    }
    zero.step();
    plain.step();
    return bits_of(own) == bits_of(twins);
  };
  if (!step(0)) return "one group";
  zero.consolidate_state_dict(0);
  const optim::AdamWOptions slow{.lr = 0.001};
  zero.add_param_group({own[1], own[2]}, slow);
  plain.add_param_group({twins[1], twins[2]}, slow);
  if (group->rank() == 0) {
    const std::string stale = expect_error<DistError>([&] { zero.state_dict(); }, {"consolidate_state_dict"});
    if (!stale.empty()) return "after a new group: " + stale;
  }
  if (!step(1) || !step(2)) return "two groups";
  zero.add_param_group({own[3], own[4]});
  plain.add_param_group({twins[3], twins[4]});
  if (zero.groups() != 3 || zero.options_text() != plain.options_text()) return zero.options_text();
  // The largest of the new ones goes to the rank that has least; nothing that was owned moves.
  const std::vector<int> owners = zero.owners();
  if (owners[0] != 0 || owners[2] != 1 || owners[1] != (group->size() == 2 ? 0 : 2)) return "owners";
  zero.set_lr(2, 0.05);
  plain.set_lr(2, 0.05);
  if (!step(3) || !step(4)) return "three groups";
  zero.consolidate_state_dict(0);
  if (group->rank() == 0) {
    const optim::OptimizerState found = zero.state_dict(), expected = plain.state_dict();
    if (found.numbers != expected.numbers || found.tensors.size() != expected.tensors.size()) return "the state";
    for (size_t i = 0; i < found.tensors.size(); ++i) {
      if (found.tensors[i].first != expected.tensors[i].first ||
          bits_of({found.tensors[i].second}) != bits_of({expected.tensors[i].second}))
        return "the state of " + expected.tensors[i].first;
    }
  }
  // Loads into an optimizer with the same groups.
  zero.load_state_dict(plain.state_dict());
  if (!step(5)) return "after a load";
  // What is refused changes nothing.
  const Tensor small = ones({2}), large = ones({4});
  std::vector<std::string> wrong;
  wrong.push_back(expect_error<DistError>(
      [&] { zero.add_param_group({group->rank() == 1 ? large : small}); },
      {"rank 0 has parameter 5: float32 [2], rank 1 has parameter 5: float32 [4]", "zero_resume_cases.cpp:"}));
  wrong.push_back(expect_error<ValueError>([&] { zero.add_param_group({own[2]}); }, {"more than one parameter group"}));
  wrong.push_back(expect_error<ValueError>([&] { zero.add_param_group({}); }, {"empty parameter list"}));
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  if (zero.groups() != 3 || zero.owners() != owners || !step(6)) return "a refused group changed something";
  return "";
}
const AddRankCase add_groups("ZeRO takes new groups of parameters, as the plain optimizer", &check_groups);

}  // namespace brigade::test::zero_resume_cases
