// Several wrappers of one group: their collectives are distinguished, and come in one order where ranks differ.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <deque>
#include <optional>

namespace brigade::test::wrapper_order_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

std::string check_backwards(const dist::ProcessGroupPtr& group) {
  Net first;
  Net second;
  Ddp a(first, group);
  Ddp b(second, group);
  const Tensor x = batch_of(group->rank(), 0);
  const Tensor of_a = loss_of(a(x));
  const Tensor of_b = loss_of(b(x));
  return expect_error<dist::CollectiveError>([&] { (group->rank() == 0 ? of_a : of_b).backward(); },
                                             {"bucket 0 of DDP(Net)\"", "bucket 0 of DDP(Net)#2\""});
}
const AddRankCase add_backwards("backwards of two wrappers of one class in another order are a mismatch",
                                &check_backwards, everywhere({2, 3}));

std::string check_construction(const dist::ProcessGroupPtr& group) {
  Net first;
  Net second;
  std::optional<Ddp> a;
  std::optional<Ddp> b;
  return expect_error<dist::ConsistencyError>(
      [&] {
        const bool other_order = group->rank() == 1;
        if (other_order) b.emplace(second, group, dist::DDPOptions{}, SourceLocation::current());
        a.emplace(first, group, dist::DDPOptions{}, SourceLocation::current());
        if (!other_order) b.emplace(second, group, dist::DDPOptions{}, SourceLocation::current());
      },
      {"wrap modules of one class in another order", "DDP(Net)#2"});
}

const AddRankCase add_construction("wrappers of one class that are made in another order are reported",
                                   &check_construction, everywhere({2, 3}));

std::string check_branches(const dist::ProcessGroupPtr& group) {
  Net net;
  std::optional<Ddp> ddp;
  for (int i = 0; i < 3; ++i) {
    if (group->rank() == 0) {
      ddp.emplace(net, group, dist::DDPOptions{}, SourceLocation::current());
    } else {
      ddp.emplace(net, group, dist::DDPOptions{}, SourceLocation::current());
    }
    loss_of((*ddp)(batch_of(group->rank(), i))).backward();
    ddp.reset();
  }
  return "";
}
const AddRankCase add_branches("ranks may make one wrapper at different lines", &check_branches, everywhere({2}));

// Two layers, the second of which may be left out.
struct BodyImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool is_skipped = false;
  BodyImpl() {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x, bool without_b) { return is_skipped ? x : without_b ? a(x) : b(a(x)); }
};
BRIGADE_MODULE(Body);

// What one rank contributes to the mean: its own gradients of b and of the critic's weight.
std::vector<Values> alone(const Body& body, const nn::Linear& critic, int rank, bool without_b) {
  const Tensor loss = loss_of(critic->forward(body->forward(batch_of(rank, 0), without_b)));
  const std::vector<Tensor> wanted = {body->b->weight, critic->weight};
  std::vector<Values> values;
  const std::vector<Tensor> gradients = autograd::grad(loss, wanted, {.allow_unused = true});
  for (size_t i = 0; i < wanted.size(); ++i)
    values.push_back(gradients[i].defined() ? values_of({gradients[i]}) : Values(16, 0));
  return values;
}

// Rank 0 leaves out b, whose bucket is full before the critic's.
std::string check_together(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Body body;
  nn::Linear critic(4, 4);
  critic->to(kFloat64);
  std::vector<Values> expected(2, Values(16, 0));
  for (int r = 0; r < group->size(); ++r) {
    const std::vector<Values> of_rank = alone(body, critic, r, r == 0);
    for (size_t i = 0; i < 2; ++i) {
      for (size_t k = 0; k < 16; ++k)
        expected[i][k] += of_rank[i][k] / group->size();
    }
  }
  // A bucket for each parameter.
  const dist::DDPOptions options{.find_unused_parameters = true, .bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6};
  dist::DistributedDataParallel<Body> ddp(body, group, options);
  dist::DistributedDataParallel<nn::Linear> ddp_of_critic(critic, group, options);
  for (int i = 0; i < 3; ++i) {
    for (const Tensor& parameter : {body->b->weight, critic->weight})
      parameter.set_grad(Tensor());
    const bool first = group->rank() == 0;
    // An evaluation on one rank must not change the order.
    if (first && i == 1) static_cast<void>(ddp_of_critic(batch_of(0, 1)));
    loss_of(ddp_of_critic(ddp(batch_of(group->rank(), 0), first))).backward();
    const std::vector<Tensor> trained = {body->b->weight, critic->weight};
    for (size_t k = 0; k < 2; ++k) {
      const std::string wrong = compare(values_of({trained[k].grad()}), expected[k]);
      if (!wrong.empty()) return fmt::format("backward {}: gradient {}: {}", i, k, wrong);
    }
  }
  return "";
}
const AddRankCase add_together("two wrappers in one backward, and a rank that leaves out a part of the first",
                               &check_together, everywhere({2, 3}));

// The loss of one rank reaches nothing of two wrappers that its peers reduce in one backward: the rank takes part, in
// their order, when the optimizer needs the gradients. A forward before or after that has no backward on any rank changes
// nothing, even if it records nothing on one of them, or only the optimizer of the other wrapper steps after it.
std::string check_wanted(const dist::ProcessGroupPtr& group) {
  for (const auto& [unused, has_two] : {std::pair{true, false}, {false, false}, {true, true}, {false, true}}) {
    manual_seed(1);
    Body body;
    nn::Linear critic(4, 4);
    critic->to(kFloat64);
    Values expected(16, 0);
    for (int r = 0; r < group->size(); ++r) {
      const Values of_rank = alone(body, critic, r, false)[1];
      for (size_t k = 0; k < 16 && r != 1; ++k)
        expected[k] += of_rank[k] / group->size();
    }
    const dist::DDPOptions options{
        .find_unused_parameters = unused, .bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6, .diagnosis = false};
    dist::DistributedDataParallel<Body> ddp(body, group, options);
    dist::DistributedDataParallel<nn::Linear> ddp_of_critic(critic, group, options);
    std::vector<Tensor> parameters = body->parameters();
    std::deque<optim::SGD> optimizers;
    if (has_two) optimizers.emplace_back(std::exchange(parameters, {}), optim::SGDOptions{.lr = 0});
    parameters.push_back(critic->weight);
    parameters.push_back(critic->bias);
    optimizers.emplace_back(parameters, optim::SGDOptions{.lr = 0});  // the gradients stay those of `alone`
    const Tensor other = zeros({1}, kFloat64);
    other.requires_grad_(true);
    for (int step = 0; step < 3; ++step) {
      for (optim::SGD& each : optimizers)
        each.zero_grad();
      if (step == 2) sum(other).backward();
      if (step == 1 && unused != has_two)
        sum(other + mean(ddp_of_critic(batch_of(group->rank(), 0))).detach()).backward();
      const auto run = [&] {
        const Tensor loss = loss_of(ddp_of_critic(ddp(batch_of(group->rank(), 0), false)));
        (step == 1 && group->rank() == 1 ? sum(other) : loss).backward();
        body->is_skipped = group->rank() == 0;
        ddp(batch_of(group->rank(), 1), false);
        body->is_skipped = false;
        if (step == 0) ddp_of_critic(batch_of(group->rank(), 1));
        for (optim::SGD& each : optimizers)
          if (step > 0 || &each == &optimizers.front()) each.step();
      };
      if (unused || step != 1) {
        run();
      } else {
        const std::string wrong =
            expect_error<dist::ReductionError>(run, {"a.weight, a.bias, b.weight, b.bias (320 B), on rank 1"});
        if (!wrong.empty()) return wrong;
      }
      if (!unused || step != 1) continue;
      const std::string wrong = compare(values_of({critic->weight.grad()}), expected);
      if (!wrong.empty()) return "the critic's gradient: " + wrong;
    }
  }
  return "";
}
const AddRankCase add_wanted("a rank whose loss reaches nothing of two wrappers follows their order", &check_wanted,
                             everywhere({2, 3}));

}  // namespace brigade::test::wrapper_order_cases
