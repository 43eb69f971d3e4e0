// ZeRO whose step runs in DDP's backward equals ZeRO without, bit for bit.
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <memory>
#include <stdexcept>
#include <type_traits>

namespace brigade::test::zero_overlap_cases {
using Net = BranchingNet;
using Ddp = dist::DistributedDataParallel<Net>;
using AdamW = optim::AdamW;

constexpr int kSteps = 5;

Tensor loss_of(Ddp& ddp, int rank, int step) {
  RandomGenerator generator(100 + 7 * static_cast<uint64_t>(rank) + 31 * static_cast<uint64_t>(step));
  return mean(square(ddp(randn({5, 4}, kFloat32, &generator)) - 1.0));
}

template <class Inner>
auto some_options() {
  if constexpr (std::is_same_v<Inner, optim::SGD>) {
    return optim::SGDOptions{.lr = 0.05, .momentum = 0.9};
  } else {
    return optim::AdamWOptions{.lr = 0.05, .amsgrad = true};
  }
}

// A model with its wrapper and optimizer, alike on every rank.
template <class Inner>
struct TrainerOf {
  using Zero = dist::ZeroRedundancyOptimizer<Inner>;
  Net net;
  Ddp ddp;
  Zero zero;

  TrainerOf(const dist::ProcessGroupPtr& group, const dist::DDPOptions& options, bool overlaps)
      : net(seeded()), ddp(net, group, options), zero(net->parameters(), some_options<Inner>(), group) {
    if (overlaps) zero.overlap_with_ddp(ddp);
  }
  static Net seeded() {
    manual_seed(1);
    return Net();
  }
  std::string bits() { return bits_of(net->parameters()); }
  void backward(int step) { loss_of(ddp, ddp.group().rank(), step).backward(); }
  void train(int step) {
    zero.zero_grad();
    backward(step);
    zero.step();
  }
};

using Trainer = TrainerOf<AdamW>;
using Zero = Trainer::Zero;

// Every parameter in a bucket of its own, or all in one.
const std::vector<double> kCaps{1e-6, 25.0};

template <class Inner>
std::string check_equal(const dist::ProcessGroupPtr& group) {
  for (const double cap : kCaps) {
    for (const bool views : {true, false}) {
      for (const bool hooked : {false, true}) {
        const dist::DDPOptions options{
            .gradient_as_bucket_view = views, .bucket_cap_mb = cap, .first_bucket_mb = cap, .verify_every = 2};
        TrainerOf<Inner> plain(group, options, false), overlapping(group, options, true);
        for (TrainerOf<Inner>* each : {&plain, &overlapping}) {
          if (hooked) each->ddp.register_comm_hook(dist::allreduce_hook());
        }
        for (int s = 0; s < kSteps; ++s) {
          for (TrainerOf<Inner>* each : {&plain, &overlapping}) {
            if (s == 3) each->zero.set_lr(0, 0.01);
            each->zero.zero_grad();
            if (s == 2) {  // two micro-batches
              const auto guard = each->ddp.no_sync();
              each->backward(100);
            }
            each->backward(s);
          }
          if (plain.bits() == overlapping.bits()) return fmt::format("nothing has moved in backward {}", s);
          const std::string after_backward = overlapping.bits();
          plain.zero.step();
          overlapping.zero.step();
          if (overlapping.bits() != after_backward) return fmt::format("step {} has moved something again", s);
          if (overlapping.bits() != plain.bits()) return fmt::format("other bits after step {}, cap {}", s, cap);
        }
        // The states are the same, wherever they are.
        plain.zero.consolidate_state_dict(0);
        overlapping.zero.consolidate_state_dict(0);
        if (group->rank() == 0) {
          const auto expected = plain.zero.state_dict(), found = overlapping.zero.state_dict();
          if (found.numbers != expected.numbers || found.tensors.size() != expected.tensors.size()) return "the state";
          for (size_t i = 0; i < found.tensors.size(); ++i) {
            if (bits_of({found.tensors[i].second}) != bits_of({expected.tensors[i].second}))
              return "the state of " + expected.tensors[i].first;
          }
        }
        // Backward, and not only step(), makes a consolidated state out of date.
        overlapping.zero.zero_grad();
        overlapping.backward(7);
        const std::string wrong =
            expect_error<DistError>([&] { overlapping.zero.state_dict(); }, {"since the last step"});
        if (!wrong.empty()) return wrong;
      }
    }
  }
  return "";
}
const AddRankCase add_equal("ZeRO that steps in backward is ZeRO bit for bit, and its step() does nothing more",
                            &check_equal<AdamW>, everywhere({2, 3}));
const AddRankCase add_equal_sgd("ZeRO of SGD that steps in backward moves each parameter once, as ZeRO without",
                                &check_equal<optim::SGD>, everywhere({2}));

// A hook sees the owner's parameters of the first bucket moved while later buckets are still to be launched.
std::string check_while_backward_runs(const dist::ProcessGroupPtr& group) {
  Trainer trainer(group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6}, true);
  std::vector<Tensor> first;
  std::string before;
  int moved_at = -1;  // the first bucket at whose launch one of the first bucket's parameters has moved
  trainer.ddp.register_comm_hook(
      dist::make_comm_hook("watcher", [&](dist::ProcessGroup& each, const dist::GradBucket& bucket) {
        if (bucket.index() == 0) {
          first = bucket.parameters();
          before = bits_of(first);
        } else if (moved_at < 0 && bits_of(first) != before) {
          moved_at = static_cast<int>(bucket.index());
        }
        return each.all_reduce(bucket.buffer(), {.op = dist::ReduceOp::Avg});
      }));
  for (int s = 0; s < 2; ++s) {
    moved_at = -1;
    trainer.train(s);
    size_t position = 0;
    while (!trainer.net->parameters()[position].is_same(first.front()))
      ++position;
    const bool owns = trainer.zero.owners()[position] == group->rank();
    if (moved_at != (owns ? 2 : -1)) return fmt::format("step {}: moved at bucket {}, owner: {}", s, moved_at, owns);
  }
  return "";
}
const AddRankCase add_while_backward_runs("ZeRO's owners step while later buckets are still to come",
                                          &check_while_backward_runs, everywhere({2, 3}));

std::string check_unused(const dist::ProcessGroupPtr& group) {
  for (const double cap : kCaps) {
    const dist::DDPOptions options{.find_unused_parameters = true, .bucket_cap_mb = cap, .first_bucket_mb = cap};
    Trainer plain(group, options, false), overlapping(group, options, true);
    for (int s = 0; s < kSteps; ++s) {
      for (Trainer* each : {&plain, &overlapping}) {
        // b is used by some ranks, then by none, with kept zero gradients, which move it by momentum.
        each->net->skip_b = s == 1 ? group->rank() == 0 : s == 2;
        each->zero.zero_grad(s != 2);
        each->backward(s);
        each->zero.step();
      }
      if (overlapping.bits() != plain.bits()) return fmt::format("other bits after step {}, cap {}", s, cap);
    }
  }
  return "";
}
const AddRankCase add_unused("ZeRO that steps in backward, with parameters that some or no ranks use", &check_unused,
                             everywhere({2, 3}));

std::string check_failures(const dist::ProcessGroupPtr& group) {
  for (const double cap : kCaps) {
    const dist::DDPOptions options{.bucket_cap_mb = cap, .first_bucket_mb = cap};
    Trainer trainer(group, options, true);
    trainer.train(0);
    // A strict error: what had moved has moved on all ranks, and training goes on.
    trainer.net->skip_b = group->rank() == 1;
    trainer.zero.zero_grad();
    std::string wrong = expect_error<dist::ReductionError>([&] { trainer.backward(1); }, {"b.weight"});
    if (!wrong.empty()) return wrong;
    trainer.net->skip_b = false;
    if (!dist::verify_consistency(*group, trainer.net).consistent()) return "the ranks differ after a strict error";
    trainer.train(2);
    // A backward that fails on one rank.
    trainer.zero.zero_grad();
    const Tensor loss = loss_of(trainer.ddp, group->rank(), 3);
    if (group->rank() == 1)
      trainer.net->a->weight.register_hook([](const Tensor&) -> Tensor { throw ValueError("on purpose"); });
    try {
      loss.backward();
      return "a failed backward went through";
    } catch (const Error&) {
    }
    if (!dist::verify_consistency(*group, trainer.net).consistent()) return "the ranks differ after a failed backward";
  }
  return "";
}
const AddRankCase add_failures("after an error in a backward in which ZeRO steps all ranks hold the same",
                               &check_failures, everywhere({2, 3}));

std::string check_refusals(const dist::ProcessGroupPtr& group) {
  std::vector<std::string> wrong;
  for (const bool views : {true, false}) {
    Trainer trainer(group, {.gradient_as_bucket_view = views}, true);
    trainer.train(0);
    // Changes between backward and step() come too late.
    trainer.zero.zero_grad();
    trainer.backward(1);
    optim::clip_grad_norm_(trainer.net->parameters(), 1e-6);
    wrong.push_back(expect_error<ValueError>([&] { trainer.zero.step(); },
                                             {"was changed", views ? "clip_grad_norm_" : "the gradient of `", "cpp:"}));
    trainer.zero.zero_grad();
    trainer.zero.step();
    trainer.zero.zero_grad();
    trainer.backward(2);
    trainer.zero.set_lr(0, 0.5);
    wrong.push_back(expect_error<ValueError>([&] { trainer.zero.step(); }, {"lr 0.05", "lr 0.5", "before backward"}));
    trainer.zero.step();
    // Two backwards before one step.
    trainer.zero.zero_grad();
    trainer.backward(3);
    const std::string before = trainer.bits();
    wrong.push_back(expect_error<ValueError>([&] { trainer.backward(4); }, {"before step()", "no_sync()"}));
    if (trainer.bits() != before) return "a refused backward has moved something";
    trainer.zero.step();
    trainer.train(5);
  }
  Trainer trainer(group, {}, true);
  const auto make = [](std::vector<Tensor> parameters) {
    return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = 0.1});
  };
  wrong.push_back(expect_error<ValueError>([&] { trainer.ddp.apply_optimizer_in_backward(make); }, {"already"}));
  Net other;
  Zero outside(other->parameters(), {.lr = 0.1}, group);
  wrong.push_back(expect_error<ValueError>([&] { outside.overlap_with_ddp(trainer.ddp); }, {"none of the parameters"}));
  // A new optimizer takes the place of one that is gone.
  Net net;
  Ddp ddp(net, group);
  std::string before;
  for (const bool first : {true, false}) {
    Zero zero(net->parameters(), {.lr = 0.1}, group);
    zero.overlap_with_ddp(ddp);
    before = bits_of(net->parameters());
    loss_of(ddp, group->rank(), first).backward();
    if (bits_of(net->parameters()) == before) return "nothing has moved in backward";
    zero.zero_grad();
  }
  before = bits_of(net->parameters());
  loss_of(ddp, group->rank(), 2).backward();
  if (bits_of(net->parameters()) != before) return "an optimizer that is gone has stepped";
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}
const AddRankCase add_refusals("ZeRO that steps in backward refuses what comes too late", &check_refusals,
                               everywhere({2}));

// Parameters that the wrapper does not hold move in step().
std::string check_left(const dist::ProcessGroupPtr& group) {
  Trainer plain(group, {}, false), overlapping(group, {}, true);
  const auto extra = [] { return ones({7}).requires_grad_(); };
  const Tensor plain_extra = extra(), own_extra = extra();
  plain.zero.add_param_group({plain_extra});
  overlapping.zero.add_param_group({own_extra});
  for (int s = 0; s < kSteps; ++s) {
    for (Trainer* each : {&plain, &overlapping}) {
      each->zero.zero_grad();
      each->backward(s);
      const Tensor& tensor = each == &plain ? plain_extra : own_extra;
      tensor.set_grad(full({7}, s - 1.5));
      each->zero.step();
    }
    if (overlapping.bits() != plain.bits()) return "other bits in the model";
    if (bits_of({own_extra}) != bits_of({plain_extra})) return "other bits outside the model";
  }
  return own_extra.to_vector<double>() == std::vector<double>(7, 1) ? "a parameter outside the wrapper stayed" : "";
}
const AddRankCase add_left("ZeRO's step() moves what backward could not", &check_left, everywhere({2}));

std::string check_join(const dist::ProcessGroupPtr& group) {
  std::string bits;
  for (const bool overlaps : {false, true}) {
    Trainer trainer(group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6}, overlaps);
    dist::Join join({trainer.ddp, trainer.zero});
    for (int s = 0; s < 2 + group->rank(); ++s)
      trainer.train(s);
    join.finish();
    if (!dist::verify_consistency(*group, trainer.net).consistent()) return "the ranks differ after the join";
    if (overlaps && trainer.bits() != bits) return "other bits than without overlap";
    bits = trainer.bits();
  }
  return "";
}
const AddRankCase add_join("ZeRO that steps in backward, in a join", &check_join, everywhere({2, 3}));

// A rank that leaves in the middle of backward: its peers cannot know how far each of them has come.
void check_lost_rank(const std::string& backend, int ranks) {
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
    TrainerOf<AdamW> trainer(group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6}, true);
    trainer.backward(0);
    trainer.zero.step();
    trainer.zero.zero_grad();
    const std::string before = trainer.bits();
    const Tensor last = trainer.net->parameters().front();
    if (group->rank() == ranks - 1) {
      last.register_hook([&](const Tensor&) -> Tensor {
        group->abort("out of memory");
        throw std::runtime_error("out of memory");
      });
      const std::string wrong = expect_error<std::runtime_error>([&] { trainer.backward(1); }, {"out of memory"});
      return wrong;
    }
    const std::string wrong = expect_error<DistError>([&] { trainer.backward(1); }, {"out of memory"});
    if (!wrong.empty()) return wrong;
    return trainer.bits() == before ? "" : "weights have moved in a backward that came to no end";
  });
}
const AddRankCase add_lost_rank("what has moved in a backward goes back where a rank is lost in it", &check_lost_rank,
                                everywhere({2, 3}));

}  // namespace brigade::test::zero_overlap_cases
