// Communication hooks: exact ones, lossy ones, and steps without communication.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/core/view.h>
#include <brigade/dist/ddp/model_averaging.h>

namespace brigade::test::comm_hooks_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// The mean over the ranks of a float64 tensor, which each rank computes from the values of all.
Values mean_over(dist::ProcessGroup& group, const Tensor& tensor) {
  Values mean(static_cast<size_t>(tensor.numel()), 0);
  const std::string mine(static_cast<const char*>(tensor.raw_data()), tensor.nbytes());
  for (const std::string& text : group.all_gather_text(mine)) {
    const auto* values = reinterpret_cast<const double*>(text.data());
    for (size_t i = 0; i < mean.size(); ++i)
      mean[i] += values[i] / group.size();
  }
  return mean;
}

void check_hooks(const std::string& backend, int ranks) {
  const Values expected = plain_reference(ranks);
  struct Variant {
    const char* name;
    std::function<dist::CommHookPtr()> make;
    double tolerance;
  };
  const std::vector<Variant> variants{
      {"allreduce", [] { return dist::allreduce_hook(); }, 1e-12},
      {"fp16_compress", [] { return dist::fp16_compress_hook(); }, 5e-3},
      {"bf16_compress", [] { return dist::bf16_compress_hook(); }, 4e-2},
      {"reduced in float32", [] { return dist::reduce_in_hook(kFloat32); }, 1e-6},
      {"reduced in float16, divided before", [] { return dist::reduce_in_hook(kFloat16, 8); }, 5e-3},
      {"powersgd of full rank",
       [] { return dist::powersgd_hook({.matrix_approximation_rank = 8, .min_compression_rate = 0.1}); }, 1e-9},
      {"post-local SGD that does not begin", [] { return dist::post_local_sgd_hook(100); }, 1e-12},
      {"a user's own",
       [] {
         return dist::make_comm_hook("mine", [](dist::ProcessGroup& group, const dist::GradBucket& bucket) {
           // Sum, then divide, in two steps.
           const dist::WorkPtr sum = group.all_reduce(bucket.buffer());
           return dist::then(sum, [buffer = bucket.buffer(), size = group.size()] { buffer.mul_(1.0 / size); });
         });
       },
       1e-12},
  };
  for (const Variant& variant : variants) {
    for (const double bucket_mb : {25.0, 1e-4}) {
      CAPTURE(variant.name);
      CAPTURE(bucket_mb);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) {
        return compare(train(group, {.bucket_cap_mb = bucket_mb, .first_bucket_mb = bucket_mb},
                             [&](Ddp& ddp) { ddp.register_comm_hook(variant.make()); }),
                       expected, variant.tolerance);
      });
    }
  }
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) {
    return compare(train(group, {.reduce_dtype = kFloat32}, [](Ddp&) {}), expected, 1e-6);
  });
  // Low rank: lossy, the same on all ranks, and later rounds make up for what is lost (error feedback): the sum over
  // many rounds of a constant gradient approaches the sum of the exact means.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    const auto hook = dist::powersgd_hook({.matrix_approximation_rank = 1, .min_compression_rate = 1});
    RandomGenerator generator(7 + static_cast<uint64_t>(group->rank()));
    const Tensor meant = randn({8, 8}, kFloat64, &generator);
    const Values mean = mean_over(*group, meant);
    Values sum(64, 0);
    const Tensor buffer = group->allocate(64, kFloat64);
    constexpr int kRounds = 200;
    for (int round = -2; round < kRounds; ++round) {  // two uncompressed rounds first
      const Tensor gradient = view::as_strided(buffer, {8, 8}, {8, 1}, 0);
      gradient.copy_(meant);
      hook->run(*group, dist::GradBucket(0, true, buffer, {meant}, {gradient}), {.op = dist::ReduceOp::Avg}, {})
          ->wait();
      if (round < 0) continue;
      for (size_t i = 0; i < 64; ++i)
        sum[i] += buffer.data_ptr<double>()[i];
      if (round == 0 && compare(values_of({gradient}), mean, 1e-3).empty()) return "rank 1 cannot be exact";
    }
    for (double& each : sum)
      each /= kRounds;
    const std::string wrong = compare(sum, mean, 0.05);
    if (!wrong.empty()) return wrong;
    // The state goes into a checkpoint and back.
    const auto other = dist::powersgd_hook();
    other->load_state_dict(hook->state_dict());
    return other->state_dict().size() == hook->state_dict().size() && !hook->state_dict().empty() ? "" : "state";
  });
  // A mean of lower rank than the approximation: nothing is lost, though the columns of P are linearly dependent.
  for (const DType dtype : {kFloat64, kFloat32}) {
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      const auto hook = dist::powersgd_hook({.matrix_approximation_rank = 7, .min_compression_rate = 0.1});
      RandomGenerator alike(5), own(50 + static_cast<uint64_t>(group->rank()));
      const Tensor meant = matmul(randn({8, 2}, dtype, &alike), randn({2, 8}, dtype, &own));
      const Values mean = mean_over(*group, meant.to(kFloat64));
      const Tensor buffer = group->allocate(64, dtype);
      const Tensor gradient = view::as_strided(buffer, {8, 8}, {8, 1}, 0);
      for (int round = 0; round < 22; ++round) {  // two uncompressed rounds first
        gradient.copy_(meant);
        hook->run(*group, dist::GradBucket(0, true, buffer, {meant}, {gradient}), {.op = dist::ReduceOp::Avg}, {})
            ->wait();
        const std::string wrong = compare(values_of({gradient}), mean, dtype == kFloat64 ? 1e-12 : 1e-5);
        if (!wrong.empty()) return fmt::format("round {}: {}", round, wrong);
      }
      return "";
    });
  }
  // Only one hook is allowed, and only before the first backward.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net;
    Ddp ddp(net, group);
    ddp.register_comm_hook(dist::allreduce_hook());
    try {
      ddp.register_comm_hook(dist::fp16_compress_hook());
      return "a second hook was taken";
    } catch (const DistError& error) {
      return std::string(error.what()).find("has `allreduce` already") != std::string::npos ? "" : error.what();
    }
  });
}
const AddRankCase add_hooks("communication hooks average, lossy ones within their bounds", &check_hooks);

void check_noop(const std::string& backend, int ranks) {
  // Every rank trains alone.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    const Values expected = reference([&](Net& net, optim::Optimizer& optimizer, int s) {
      optimizer.zero_grad();
      loss_of(net(batch_of(group->rank(), s))).backward();
      optimizer.step();
    });
    return compare(train(group, {}, [](Ddp& ddp) { ddp.register_comm_hook(dist::noop_hook()); }), expected);
  });
  // When rank 0 contributes nearly all of the mean, its own gradient is as large as an undivided sum: intended here.
  manual_seed(1);
  Net alone;
  loss_of(alone(batch_of(0, 0))).backward();
  const Values whole = values_of({alone->c->bias.grad()});
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    ddp.register_comm_hook(dist::noop_hook());
    const double weight = group->rank() == 0 ? 1 : 1e-5;
    (loss_of(ddp(batch_of(0, 0))) * weight).backward();
    Values expected = whole;
    for (double& each : expected)
      each *= weight;
    return compare(values_of({net->c->bias.grad()}), expected);
  });
}
const AddRankCase add_noop("noop_hook leaves every rank its own gradients, whatever the mean is", &check_noop);

void check_local_sgd_and_averaging(const std::string& backend, int ranks) {
  // With plain SGD, averaging the parameters after each local step is averaging the gradients.
  manual_seed(1);
  Net one;
  optim::SGD plain(one->parameters(), {.lr = 0.1});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    loss_of(one(whole_batch(ranks, s))).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    ddp.register_comm_hook(dist::post_local_sgd_hook(2));  // two global rounds, then local ones
    dist::PeriodicModelAverager averager(group, 1);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    uint64_t collectives = 0;
    for (int s = 0; s < kSteps; ++s) {
      optimizer.zero_grad();
      if (s == 2) collectives = ddp.reducer().past().collectives;
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
      averager.average_parameters(net->parameters());
    }
    if (ddp.reducer().past().collectives != collectives) return "a local round was sent";
    return compare(values_of(net->parameters()), expected);
  });
  // Period and warm-up.
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    dist::PeriodicModelAverager averager(group, 3, 2);
    std::string pattern;
    for (int call = 0; call < 9; ++call) {
      const Tensor value = full({2}, static_cast<double>(group->rank()), kFloat64);
      const Tensor half = full({3}, static_cast<double>(group->rank()), kFloat16);
      const bool averaged = averager.average_parameters({value, half});
      pattern += averaged ? '1' : '0';
      const double middle = averaged ? (ranks - 1) / 2.0 : group->rank();
      if (values_of({value, half}) != Values(5, middle)) return "the mean";
    }
    return pattern == "001001001" ? "" : pattern;
  });
}
const AddRankCase add_local_sgd_and_averaging("local SGD with model averaging", &check_local_sgd_and_averaging);

}  // namespace brigade::test::comm_hooks_cases
