// After a backward whose collectives failed, later backwards throw the same error: none silently stays local.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <core/error_of.h>

#include <stdexcept>

namespace brigade::test::broken_backward_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// Later backwards, with and without a forward of the wrapper, throw an E with the text `broke` and leave no gradient.
template <class E>
std::string check_later(Ddp& ddp, Net& net, const std::string& broke) {
  const Tensor x = batch_of(0, 1);
  const std::string forward = text_of<E>([&] { loss_of(ddp(x)).backward(); });
  if (forward != broke) return "the next forward: " + forward + "\ninstead of: " + broke;
  const std::string backward = text_of<E>([&] { loss_of(net(x)).backward(); });
  if (backward != broke) return "a backward: " + backward + "\ninstead of: " + broke;
  for (const Tensor& parameter : net->parameters()) {
    if (parameter.grad().defined()) return "a gradient was left";
  }
  // Under no_sync nothing is exchanged.
  const auto local = ddp.no_sync();
  return text_of<E>([&] { loss_of(ddp(x)).backward(); }) == "nothing" ? "" : "a local backward failed";
}

void check_lost_rank(const std::string& backend, int ranks) {
  const std::vector<Rank> outcome = run_ranks(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    Net net;
    Ddp ddp(net, group);
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
    if (group->rank() == ranks - 1) return "";  // leaves
    net->zero_grad();
    const std::string broke = text_of<PeerError>([&] { loss_of(ddp(batch_of(group->rank(), 1))).backward(); });
    if (broke.find(fmt::format("rank {}", ranks - 1)) == std::string::npos) return broke;
    return check_later<PeerError>(ddp, net, broke);
  });
  expect_all_well(outcome);
}
const AddRankCase add_lost_rank("after a rank has left, every later backward says so", &check_lost_rank,
                                everywhere({2, 3}));

void check_time_out(const std::string& backend, int ranks) {
  const std::vector<Rank> outcome = run_ranks(
      backend, ranks,
      [&](dist::ProcessGroupPtr group) -> std::string {
        Net net;
        Ddp ddp(net, group);
        if (group->rank() == ranks - 1) {
          // Alive but busy elsewhere: the peers give up, and a later call of this rank reports it.
          std::string left = "nothing";
          while (left == "nothing")
            left = text_of<DistError>([&] { group->monitored_barrier(std::chrono::seconds(5)); });
          return "";
        }
        const std::string broke = text_of<DistError>([&] { loss_of(ddp(batch_of(group->rank(), 0))).backward(); });
        return check_later<DistError>(ddp, net, broke);
      },
      std::chrono::milliseconds(1500));
  expect_all_well(outcome);
}
const AddRankCase add_time_out("after ranks that did not meet, every later backward says so", &check_time_out,
                               everywhere({2}));

std::string check_hook(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group);
  int runs = 0;
  ddp.register_comm_hook(
      dist::make_comm_hook("of the test", [&](dist::ProcessGroup& g, const dist::GradBucket& bucket) {
        if (++runs > 1) throw std::runtime_error("the hook has no more paper");
        return g.all_reduce(bucket.buffer(), {.op = dist::ReduceOp::Avg});
      }));
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  net->zero_grad();
  const std::string broke = text_of<std::runtime_error>([&] { loss_of(ddp(batch_of(group->rank(), 1))).backward(); });
  if (broke != "the hook has no more paper") return broke;
  return check_later<std::runtime_error>(ddp, net, broke);
}
const AddRankCase add_hook("after a hook that threw on every rank, every later backward throws that", &check_hook,
                           everywhere({2, 3}));

// A generator whose backward may fail in the middle.
struct GeneratorNetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool fails = false;
  GeneratorNetImpl() {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 4));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = a(x);
    if (fails) features.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("out of memory"); });
    return b(features);
  }
};
BRIGADE_MODULE(GeneratorNet);

// A generator step with a frozen critic: no rank reaches a parameter of the critic's wrapper, and the wrapper's first
// bucket has already reported so when the backward fails.
std::string check_frozen_critic(const dist::ProcessGroupPtr& group) {
  GeneratorNet net;
  nn::Linear critic(4, 4);
  critic->to(kFloat64);
  const dist::DDPOptions options{.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6};  // a bucket for each parameter
  dist::DistributedDataParallel<GeneratorNet> ddp(net, group, options);
  dist::DistributedDataParallel<nn::Linear> ddp_of_critic(critic, group, options);
  critic->requires_grad_(false);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int step = 0; step < 4; ++step) {
    optimizer.zero_grad();
    net->fails = step % 2 == 1 && group->rank() == 0;
    const auto run = [&] {
      loss_of(ddp_of_critic(ddp(batch_of(group->rank(), step)))).backward();
      optimizer.step();
    };
    const std::string told = text_of<std::runtime_error>(run);
    const bool is_told = told.find("out of memory") != std::string::npos;
    if (is_told != (step % 2 == 1)) return fmt::format("step {}: {}", step, told);
  }
  return "";
}
const AddRankCase add_frozen_critic("a rank that fails behind a frozen wrapper of several buckets ends that step alone",
                                    &check_frozen_critic, everywhere({2, 3}));

}  // namespace brigade::test::broken_backward_cases
