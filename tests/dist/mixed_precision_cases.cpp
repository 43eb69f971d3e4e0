// Training in half types on several ranks: a GPT block compared with float32, and half parameters with master weights,
// also sharded over the ranks.
#include "rank_case.h"

#include <brigade/amp/autocast.h>
#include <brigade/amp/grad_scaler.h>
#include <brigade/autograd/functional.h>
#include <brigade/dist/checks/values.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/ddp/zero_redundancy_optimizer.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string_view>

namespace brigade::test::mixed_precision_cases {
constexpr std::string_view kText = "the quick brown fox jumps over the lazy dog while five boxing wizards vex a judge ";
constexpr int64_t kLength = 12, kBatch = 4;  // over all ranks: the same examples for any number of ranks

// Letters as numbers from 0 to 26, and the letters that follow them.
struct Letters {
  Tensor shown, next;
};
Letters letters_of(int rank, int ranks, int step) {
  std::vector<int64_t> shown, next;
  const auto at = [](int64_t i) {
    const char letter = kText[static_cast<size_t>(i) % kText.size()];
    return letter == ' ' ? int64_t{26} : int64_t{letter - 'a'};
  };
  for (int64_t row = rank; row < kBatch; row += ranks) {
    const int64_t begin = 17 * row + 5 * step;
    for (int64_t i = begin; i < begin + kLength; ++i) {
      shown.push_back(at(i));
      next.push_back(at(i + 1));
    }
  }
  const Shape sizes{kBatch / ranks, kLength};
  return {from_values(std::span<const int64_t>(shown), sizes), from_values(std::span<const int64_t>(next), sizes)};
}

// The mean loss of the last 20 of 500 steps; nullopt if the replicas differ.
std::optional<double> train_gpt(const dist::ProcessGroupPtr& group, std::optional<DType> dtype) {
  constexpr int kSteps = 500;
  manual_seed(1);
  nn::GPT net({.vocab_size = 27, .block_size = kLength, .n_layer = 1, .n_head = 2, .n_embd = 32});
  dist::DistributedDataParallel<nn::GPT> ddp(net, group);
  optim::AdamW optimizer(net->parameters(), {.lr = 3e-3});
  amp::GradScaler scaler({.enabled = dtype == kFloat16});
  double sum = 0;
  for (int s = 0; s < kSteps; ++s) {
    const Letters letters = letters_of(group->rank(), group->size(), s);
    optimizer.zero_grad();
    Tensor loss;
    {
      const amp::autocast region(kCPU, dtype, dtype.has_value());
      loss = cross_entropy(ddp(letters.shown).reshape({-1, 27}), letters.next.reshape({-1}));
    }
    scaler.scale(loss).backward();
    scaler.step(optimizer);
    scaler.update();
    const Tensor mean = loss.detach().to(kFloat64).clone();
    group->all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = "loss"})->wait();
    if (s >= kSteps - 20) sum += mean.item() / 20;
  }
  if (!dist::verify_consistency(*group, net).consistent()) return std::nullopt;
  return sum;
}

std::string check_gpt(const dist::ProcessGroupPtr& group) {
  const std::optional<double> expected = train_gpt(group, std::nullopt);
  if (!expected || *expected > 0.3) return fmt::format("float32: {}", expected.value_or(NAN));
  for (const DType dtype : {kFloat16, kBFloat16}) {
    const std::optional<double> found = train_gpt(group, dtype);
    if (!found) return fmt::format("{}: the replicas differ", name(dtype));
    const double bound = dtype == kFloat16 ? 0.05 : 0.15;
    if (!(std::abs(*found / *expected - 1) < bound))
      return fmt::format("{}: a loss of {} beside {}", name(dtype), *found, *expected);
  }
  return "";
}
const AddRankCase add_gpt("a GPT block in mixed precision reaches the loss of float32 in 500 steps", &check_gpt,
                          everywhere({1, 2}));

// Trains half parameters under a scaler; some float16 steps overflow.
template <class Net, class Optimizer>
std::string train_half(const dist::ProcessGroupPtr& group, Net& net, Optimizer& optimizer,
                       dist::DDPOptions options = {}) {
  dist::DistributedDataParallel<Net> ddp(net, group, options);
  amp::GradScaler scaler({.init_scale = 1 << 24});
  for (int s = 0; s < 12; ++s) {
    optimizer.zero_grad();
    RandomGenerator generator(7 + static_cast<uint64_t>(group->rank() + 10 * s));
    const Tensor batch = randn({6, 4}, kFloat32, &generator).to(net->parameters()[0].dtype());
    scaler.scale(square(ddp(batch).to(kFloat32) - 1.0).mean()).backward();
    scaler.step(optimizer);
    scaler.update();
  }
  const bool overflows = net->parameters()[0].dtype() == kFloat16;  // bfloat16 has the range of float32
  if ((optimizer.steps_skipped() > 0) != overflows || optimizer.steps_skipped() > 8)
    return fmt::format("{} steps were skipped", optimizer.steps_skipped());
  return dist::verify_consistency(*group, net).consistent() ? "" : "the replicas differ";
}

std::string check_master_weights(const dist::ProcessGroupPtr& group) {
  for (const DType dtype : {kFloat16, kBFloat16}) {
    const auto net_of = [dtype] {
      manual_seed(1);
      nn::Sequential net(nn::Linear(4, 16), nn::Tanh(), nn::Linear(16, 3));
      net->to(dtype);
      return net;
    };
    const optim::AdamWOptions options{.lr = 1e-4, .master_weights = true};
    nn::Sequential plain = net_of(), dealt = net_of();
    optim::AdamW of_plain(plain->parameters(), options);
    dist::ZeroRedundancyOptimizer<optim::AdamW> of_dealt(dealt->parameters(), options, group);
    if (!of_dealt.keeps_master_weights()) return "ZeRO does not say that it keeps master weights";
    for (const std::string& wrong : {train_half(group, plain, of_plain), train_half(group, dealt, of_dealt)}) {
      if (!wrong.empty()) return fmt::format("{}: {}", name(dtype), wrong);
    }
    if (bits_of(plain->parameters()) != bits_of(dealt->parameters())) return "ZeRO has moved to other bits";

    // The states are equal, master weights included, and the state of one optimizer loads into the other.
    of_dealt.consolidate_state_dict(0);
    std::string wrong;
    if (group->rank() == 0) {
      const optim::OptimizerState expected = of_plain.state_dict(), found = of_dealt.state_dict();
      if (found.numbers != expected.numbers) wrong = "other numbers in the state";
      size_t copies = 0;
      for (size_t i = 0; i < expected.tensors.size() && wrong.empty(); ++i) {
        const auto& [tensor_name, tensor] = expected.tensors[i];
        copies += tensor_name.ends_with(".master_weight");
        if (i >= found.tensors.size() || found.tensors[i].first != tensor_name ||
            bits_of({found.tensors[i].second}) != bits_of({tensor}))
          wrong = "the state has another " + tensor_name;
      }
      if (wrong.empty() && copies != 4) wrong = fmt::format("{} master weights in the state", copies);
    }
    if (!wrong.empty()) return wrong;
    nn::Sequential resumed = net_of();
    resumed->load_state_dict(plain->state_dict());
    dist::ZeroRedundancyOptimizer<optim::AdamW> of_resumed(resumed->parameters(), {.lr = 1e-4}, group);
    of_resumed.load_state_dict(of_plain.state_dict());
    if (!of_resumed.keeps_master_weights()) return "the state that was loaded has master weights";
    for (const std::string& again : {train_half(group, plain, of_plain), train_half(group, resumed, of_resumed)}) {
      if (!again.empty() && again.find("skipped") == again.npos) return again;
    }
    if (bits_of(plain->parameters()) != bits_of(resumed->parameters())) return "other bits after loading";
  }
  return "";
}
const AddRankCase add_master_weights(
    "half parameters with master weights, plain and dealt out over the ranks, to the bit", &check_master_weights,
    everywhere({2, 3}));

}  // namespace brigade::test::mixed_precision_cases
