#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>
#include <set>

namespace brigade::test::ddp_cases {
using Net = BranchingNet;

const std::vector<std::string> kLayouts{"AABB", "AAB", "ABAB"};

Tensor batch_of(int rank, int64_t rows = 6) {
  RandomGenerator generator(50 + static_cast<uint64_t>(rank));
  return randn({rows, 4}, kFloat32, &generator);
}

Tensor loss_of(const Tensor& output) { return mean(square(output)); }

// "" when all ranks hold the same bits.
std::string same_everywhere(dist::ProcessGroup& group, const std::vector<Tensor>& tensors) {
  const auto all = group.all_gather_text(bits_of(tensors));
  for (const std::string& each : all) {
    if (each != all[0]) return "the ranks differ";
  }
  return "";
}

// Copies the values of the layers by name.
void copy_values(Net& from, Net& to) { to->load_state_dict(from->state_dict(), false); }

std::vector<int> all_but(int ranks, int left_out) {
  std::vector<int> result;
  for (int r = 0; r < ranks; ++r) {
    if (r != left_out) result.push_back(r);
  }
  return result;
}

// Runs a step that must raise a ReductionError, then a correct step, and returns what was wrong with either. The errors
// of all ranks must have the same text.
std::string fail_then_recover(const dist::ProcessGroupPtr& group, Net& net, dist::DistributedDataParallel<Net>& ddp,
                              const std::function<void()>& failing,
                              const std::function<std::string(const dist::ReductionError&)>& judge) {
  std::string text;
  try {
    failing();
    return "nothing was raised";
  } catch (const dist::ReductionError& error) {
    text = error.what();
    const std::string wrong = judge(error);
    if (!wrong.empty()) return wrong + " in: " + text;
  }
  for (const std::string& other : group->all_gather_text(text)) {
    if (other != text) return "the ranks raised different texts: " + text + " / " + other;
  }
  for (const Tensor& parameter : net->parameters()) {
    if (parameter.grad().defined()) return "gradients of the failed backward were left";
  }
  // A correct step works without wrapping again.
  net->skip_b = false;
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  loss_of(ddp(batch_of(group->rank()))).backward();
  optimizer.step();
  return same_everywhere(*group, net->parameters());
}

void check_same_as_one_process(const std::string& backend, int ranks) {
  // The reference: one process on the whole batch.
  manual_seed(1);
  Net reference;
  std::vector<Tensor> batches;
  for (int r = 0; r < ranks; ++r)
    batches.push_back(batch_of(r));
  optim::SGD reference_optimizer(reference->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int step = 0; step < 4; ++step) {
    reference_optimizer.zero_grad();
    loss_of(reference(cat(batches))).backward();
    reference_optimizer.step();
  }
  std::vector<float> expected;
  for (const Tensor& parameter : reference->parameters()) {
    for (const float v : parameter.to_vector<float>())
      expected.push_back(v);
  }
  for (const double bucket_mb : {25.0, 1e-4}) {
    for (const bool set_to_none : {true, false}) {
      CAPTURE(bucket_mb);
      CAPTURE(set_to_none);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        // Ranks start with different weights: construction makes them equal to rank 0's.
        manual_seed(group->rank() == 0 ? 1 : 99);
        Net net;
        dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = bucket_mb, .first_bucket_mb = bucket_mb});
        if ((ddp.reducer().buckets().layouts().size() == 1) != (bucket_mb > 1)) return "number of buckets";
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int step = 0; step < 4; ++step) {
          optimizer.zero_grad(set_to_none);
          loss_of(ddp(batch_of(group->rank()))).backward();
          for (const Tensor& parameter : net->parameters()) {
            if (!parameter.grad().is_same(autograd::grad_target(parameter)))
              return "a gradient does not live in its bucket";
          }
          optimizer.step();
        }
        if (!ddp.reducer().buckets().is_rebuilt()) return "buckets were not rebuilt";
        const uint64_t before = ddp.reducer().past().collectives;
        loss_of(ddp(batch_of(group->rank()))).backward();
        if (ddp.reducer().past().collectives - before != ddp.reducer().buckets().layouts().size())
          return "collectives per step";
        size_t i = 0;
        for (const Tensor& parameter : net->parameters()) {
          for (const float v : parameter.to_vector<float>()) {
            if (std::abs(v - expected[i]) > 2e-6)
              return fmt::format("parameter element {}: {} instead of {}", i, v, expected[i]);
            ++i;
          }
        }
        return same_everywhere(*group, net->parameters());
      });
    }
  }
}
const AddRankCase add_same_as_one_process("DDP: gradients and steps equal those of one process on the whole batch",
                                          &check_same_as_one_process, everywhere({1, 2, 3}, kLayouts));

void check_unused_on_one_rank(const std::string& backend, int ranks) {
  for (const double bucket_mb : {25.0, 1e-4}) {
    for (const int fails_in_step : {0, 2}) {  // also in the last iteration of a training, after sound ones
      CAPTURE(bucket_mb);
      CAPTURE(fails_in_step);
      expect_well(backend, ranks, [=](dist::ProcessGroupPtr group) -> std::string {
        Net net;
        dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = bucket_mb, .first_bucket_mb = bucket_mb});
        for (int step = 0; step < fails_in_step; ++step) {
          net->zero_grad();
          loss_of(ddp(batch_of(group->rank()))).backward();
        }
        net->zero_grad();
        net->skip_b = group->rank() == 1;
        return fail_then_recover(
            group, net, ddp, [&] { loss_of(ddp(batch_of(group->rank()))).backward(); },
            [&](const dist::ReductionError& error) -> std::string {
              if (error.verdicts().size() != 1) return fmt::format("{} verdicts", error.verdicts().size());
              const dist::Verdict& verdict = error.verdicts()[0];
              if (verdict.kind != "unused_parameters" || verdict.parameters.size() != 2)
                return "kind or number of parameters";
              if (verdict.parameters[0].name != "b.weight" || verdict.parameters[1].name != "b.bias") return "names";
              if (verdict.ranks != std::vector<int>{1} || verdict.parameters[0].ready_ranks != all_but(ranks, 1))
                return "ranks";
              if (verdict.cause.kind != dist::CauseKind::ModuleNotCalled || verdict.cause.module != "b") return "cause";
              const std::string text = error.what();
              for (const char* part :
                   {"Expected to have finished reduction in the prior iteration before starting a new one.",
                    "b.weight, b.bias", "on rank 1, in backward",
                    "ddp_cases.cpp:", "PyTorch says: \"Expected to have finished reduction"}) {
                if (text.find(part) == std::string::npos) return fmt::format("'{}' is missing", part);
              }
              return "";
            });
      });
    }
  }
}
const AddRankCase add_unused_on_one_rank(
    "DDP: a parameter unused on rank 1 only: every rank raises the same error, and the next step works",
    &check_unused_on_one_rank, everywhere({2, 3, 4}, kLayouts));

std::string check_loss_reaches_nothing(const dist::ProcessGroupPtr& group) {
  Net net;
  dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
  return fail_then_recover(
      group, net, ddp,
      [&] {
        const Tensor output = ddp(batch_of(group->rank()));
        const Tensor loss = group->rank() == 1 ? zeros({}).requires_grad_() : loss_of(output);
        loss.backward();
      },
      [&](const dist::ReductionError& error) -> std::string {
        std::set<std::string> names;
        for (const dist::Verdict& verdict : error.verdicts()) {
          if (verdict.ranks != std::vector<int>{1}) return "ranks";
          for (const auto& parameter : verdict.parameters)
            names.insert(parameter.name);
        }
        return names.size() == 6 ? "" : "not all parameters are named";
      });
}
const AddRankCase add_loss_reaches_nothing("DDP: a rank whose loss reaches no parameter at all",
                                           &check_loss_reaches_nothing, everywhere({2, 3}));

void check_failure_in_backward(const std::string& backend, int ranks) {
  for (const bool no_history : {false, true}) {  // in the middle of backward, or before it could start
    CAPTURE(no_history);
    expect_well(backend, ranks, [=](dist::ProcessGroupPtr group) -> std::string {
      Net net;
      dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
      const auto failing = [&] {
        const Tensor output = ddp(batch_of(group->rank()));
        Tensor loss = loss_of(output);
        if (group->rank() == 1 && no_history) loss = loss.detach();
        if (group->rank() == 1 && !no_history) {
          loss = loss * 1.0;
          output.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("the hook gave up"); });
        }
        loss.backward();
      };
      const char* expected = no_history ? "does not require grad and does not have a grad_fn" : "the hook gave up";
      if (group->rank() == 1) {
        // The rank that fails gets its own error; the other ranks get a ReductionError that quotes it.
        try {
          failing();
          return "nothing was raised";
        } catch (const dist::ReductionError&) {
          return "its own error was replaced";
        } catch (const std::exception& error) {
          if (std::string(error.what()).find(expected) == std::string::npos)
            return std::string("another error: ") + error.what();
        }
      } else {
        try {
          failing();
          return "nothing was raised";
        } catch (const dist::ReductionError& error) {
          const std::string text = error.what();
          if (text.find("Rank 1 failed in its backward") == std::string::npos ||
              text.find(expected) == std::string::npos)
            return text;
          if (error.verdicts().at(0).kind != "rank_failed" || error.verdicts()[0].ranks != std::vector<int>{1})
            return "verdict";
        }
      }
      net->zero_grad();
      loss_of(ddp(batch_of(group->rank()))).backward();
      std::vector<Tensor> gradients;
      for (const Tensor& parameter : net->parameters())
        gradients.push_back(parameter.grad());
      return same_everywhere(*group, gradients);
    });
  }
}
const AddRankCase add_failure_in_backward(
    "DDP: an exception in one rank's backward reaches its peers, which name the rank", &check_failure_in_backward,
    everywhere({2, 3}, kLayouts));

std::string check_find_unused(const dist::ProcessGroupPtr& group) {
  const int ranks = group->size();
  manual_seed(2);
  Net net;
  const Tensor spare = net->register_parameter("spare", ones({3}));
  // A gradient of an earlier phase on a parameter that no rank uses stays unchanged, bit for bit.
  spare.set_grad(full({3}, 0.1));
  dist::DistributedDataParallel ddp(net, group,
                                    {.find_unused_parameters = true, .bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
  uint64_t before = 0;
  for (int step = 0; step < 3; ++step) {
    before = ddp.reducer().past().collectives;
    for (const auto& [name, parameter] : net->named_parameters()) {
      if (name != "spare") parameter.set_grad(Tensor());
    }
    net->skip_b = group->rank() != 0;
    loss_of(ddp(batch_of(group->rank()))).backward();
    if (spare.grad().to_vector<float>() != std::vector<float>(3, 0.1F))
      return "the gradient of an unused parameter changed";
    // b was used on rank 0 alone: its gradient is rank 0's, divided by the number of ranks.
    Net alone;
    copy_values(net, alone);
    loss_of(alone(batch_of(0))).backward();
    const auto mine = net->b->weight.grad().to_vector<float>();
    const auto expected = alone->b->weight.grad().to_vector<float>();
    for (size_t i = 0; i < mine.size(); ++i) {
      if (std::abs(mine[i] - expected[i] / static_cast<float>(ranks)) > 1e-6)
        return fmt::format("b.weight {}: {} instead of {}", i, mine[i], expected[i] / static_cast<float>(ranks));
    }
  }
  if (ddp.reducer().past().collectives - before != ddp.reducer().buckets().layouts().size())
    return "find_unused_parameters costs collectives";
  return "";
}
const AddRankCase add_find_unused(
    "DDP: find_unused_parameters: averaged with zeros, left alone where no rank used it, no more collectives",
    &check_find_unused, everywhere({2, 3}));

std::string check_no_sync(const dist::ProcessGroupPtr& group) {
  const int ranks = group->size();
  manual_seed(3);
  Net net;
  dist::DistributedDataParallel ddp(net, group);
  const Tensor first = batch_of(group->rank());
  const Tensor second = batch_of(group->rank() + 10);
  {
    const auto outer = ddp.no_sync();
    const auto inner = ddp.no_sync();
    loss_of(ddp(first)).backward();
  }
  if (ddp.reducer().past().collectives != 0) return "no_sync reduced";
  // b is used in the first micro-batch only: the flags of an accumulation are joined.
  net->skip_b = true;
  loss_of(ddp(second)).backward();
  std::vector<Tensor> gradients;
  for (const Tensor& parameter : net->parameters())
    gradients.push_back(parameter.grad());
  const std::string differs = same_everywhere(*group, gradients);
  if (!differs.empty()) return differs;
  // The same, computed by hand from all batches.
  Net alone;
  copy_values(net, alone);
  for (int r = 0; r < ranks; ++r) {
    alone->skip_b = false;
    (loss_of(alone(batch_of(r))) / static_cast<double>(ranks)).backward();
    alone->skip_b = true;
    (loss_of(alone(batch_of(r + 10))) / static_cast<double>(ranks)).backward();
  }
  for (size_t p = 0; p < gradients.size(); ++p) {
    const auto mine = gradients[p].to_vector<float>();
    const auto expected = alone->parameters()[p].grad().to_vector<float>();
    for (size_t i = 0; i < mine.size(); ++i) {
      if (std::abs(mine[i] - expected[i]) > 1e-6)
        return fmt::format("parameter {} element {}: {} instead of {}", p, i, mine[i], expected[i]);
    }
  }
  return "";
}
const AddRankCase add_no_sync("DDP: no_sync accumulates, with the flags of all micro-batches joined", &check_no_sync,
                              everywhere({2, 3}));

void check_models_differ(const std::string& backend, int ranks) {
  struct Row {
    std::function<void(nn::Module&)> change;  // on rank 1
    const char* expected;
  };
  for (const Row& row : std::vector<Row>{
           {[](nn::Module& m) { m.register_parameter("extra", ones({5})); },
            "rank 1 has parameter `extra` float32 [5]"},
           {[](nn::Module& m) { m.replace_module("a", nn::Linear(4, 7).ptr()); },
            "rank 1 has parameter `a.weight` float32 [7, 4]"},
           {[](nn::Module& m) { m.to(kFloat64); }, "rank 1 has parameter `a.weight` float64 [8, 4]"},
           {[](nn::Module& m) { m.parameters()[2].requires_grad_(false); }, "and frozen on rank 1 (set at "}}) {
    CAPTURE(row.expected);
    const auto outcome = run_ranks(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      Net net;
      if (group->rank() == 1) row.change(*net);
      dist::DistributedDataParallel ddp(net, group);
      return "";
    });
    for (const Rank& rank : outcome) {
      CHECK(rank.error == "DistError");
      CHECK_MESSAGE(rank.text.find(row.expected) != std::string::npos, rank.text);
      CHECK(rank.text.find("PyTorch says: \"DDP expects same model across all ranks\"") != std::string::npos);
      CHECK(rank.text == outcome[0].text);
    }
  }
}
const AddRankCase add_models_differ(
    "DDP: ranks that disagree on the model learn the first difference and who holds what", &check_models_differ,
    everywhere({2, 3}));

}  // namespace brigade::test::ddp_cases
