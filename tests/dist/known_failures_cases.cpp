// Measures claims about DDP that articles repeat. The numbers in brackets are rows of docs/reference/known-failures.md; rows that
// stand for a planted fault are tested in tests/lab/known_failures_test.cpp.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/checks/values.h>

#include <algorithm>

namespace brigade::test::known_failures_cases {

using namespace mechanisms;  // NOLINT: batch_of, loss_of and values_of

// A trunk and two heads, the second of which is optional.
struct TwoHeadsImpl : nn::Module {
  nn::Linear trunk{nullptr}, first{nullptr}, second{nullptr};
  bool uses_second = true;
  TwoHeadsImpl() {
    trunk = register_module("trunk", nn::Linear(4, 8));
    first = register_module("first", nn::Linear(8, 3));
    second = register_module("second", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(trunk(x));
    return uses_second ? first(features) + second(features) : first(features);
  }
};
BRIGADE_MODULE(TwoHeads);
using Ddp = dist::DistributedDataParallel<TwoHeads>;

// What one backward sends: collectives, and elements in all of them.
struct Sent {
  size_t collectives = 0;
  int64_t elements = 0;
  bool operator==(const Sent&) const = default;
};
Sent sent_by(dist::ProcessGroup& group, const std::function<void()>& body) {
  const uint64_t before = group.flight_recorder().entries().back().sequence;
  body();
  Sent sent;
  for (const dist::CollectiveInfo& each : group.flight_recorder().entries()) {
    if (each.sequence <= before) continue;
    ++sent.collectives;
    sent.elements += each.count;
  }
  return sent;
}

// find_unused_parameters neither costs nor saves a collective; parameters without a gradient are sent as zeros.
std::string check_price_of_flag(const dist::ProcessGroupPtr& group) {
  std::vector<Sent> all;
  for (const bool flag : {false, true}) {
    for (const bool uses_second : {true, false}) {
      if (!flag && !uses_second) continue;  // an error
      manual_seed(1);
      TwoHeads net;
      Ddp ddp(net, group, {.find_unused_parameters = flag, .bucket_cap_mb = 0.0001, .first_bucket_mb = 0.0001});
      for (int step = 0; step < 2; ++step)  // buckets are rebuilt after the first
        loss_of(ddp(batch_of(group->rank(), step))).backward();
      net->uses_second = uses_second;
      net->zero_grad();
      all.push_back(sent_by(*group, [&] { loss_of(ddp(batch_of(group->rank(), 2))).backward(); }));
      if (!uses_second && net->second->weight.grad().defined()) return "a parameter that no rank used has a gradient";
    }
  }
  if (all[0].collectives < 3) return fmt::format("{} collectives", all[0].collectives);
  if (all[1] != all[0]) return "find_unused_parameters has a price";
  return all[2] == all[0] ? "" : "what is unused is not sent";
}
const AddRankCase add_price_of_flag(
    "[000.14] [001.1] [001.3] [002.5] [002.6] find_unused_parameters costs no collective, and spares none either",
    &check_price_of_flag, everywhere({2, 3}));

// `grad is None` does not test whether this rank used a parameter.
std::string check_grad_is_none(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  TwoHeads net;
  Ddp ddp(net, group, {.find_unused_parameters = true});
  const dist::AdvisoryCollector quiet;
  net->uses_second = group->rank() == 0;
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  if (!net->second->weight.grad().defined()) return "a parameter that rank 0 used has no gradient";
  for (const dist::ExplainedParameter& each : ddp.explain().parameters) {
    if (each.name != "second.weight") continue;
    if (each.used != (group->rank() == 0) || each.users != 1) return "explain() knows better, or should";
  }
  return "";
}
const AddRankCase add_grad_is_none(
    "[001.5] a gradient is there although this rank did not use the parameter; explain() knows", &check_grad_is_none,
    everywhere({2, 3}));

// Gradients are reduced while backward runs, bucket by bucket, not between backward and step.
std::string check_reduced_in_backward(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  TwoHeads net;
  Ddp ddp(net, group, {.bucket_cap_mb = 0.0001, .first_bucket_mb = 0.0001});
  for (int step = 0; step < 2; ++step)
    loss_of(ddp(batch_of(group->rank(), step))).backward();
  const dist::RoundEvents& round = ddp.timeline().rounds().back();
  if (round.buckets.size() < 3) return fmt::format("{} buckets", round.buckets.size());
  if (round.buckets.front().launched >= round.compute_ended) return "the first bucket left after backward";
  return round.buckets.front().launched >= round.began ? "" : "it left before";
}
const AddRankCase add_reduced_in_backward("[004.6] gradients are reduced during backward, bucket by bucket",
                                          &check_reduced_in_backward, everywhere({2}));

// If the printed gradients differ between ranks, verify_consistency names the first one that does.
std::string check_first_difference(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  TwoHeads net;
  Ddp ddp(net, group);
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  if (!dist::verify_consistency(*group, net).consistent()) return "equal gradients were blamed";
  if (group->rank() == group->size() - 1) {
    const NoGradGuard no_grad;
    net->first->weight.grad().mul_(1.5);
  }
  const dist::ConsistencyReport report = dist::verify_consistency(*group, net);
  if (report.consistent()) return "nothing was found";
  const dist::Verdict& verdict = report.verdicts.front();
  if (verdict.kind != "gradients_differ" || verdict.parameters.front().name != "first.weight")
    return verdict.kind + ": " + verdict.message;
  return "";
}
const AddRankCase add_first_difference("[004.2] [004.10] verify_consistency names the first gradient that differs",
                                       &check_first_difference, everywhere({2, 3}));

// From one rank upwards: the same gradients as one process on the whole batch.
std::string check_one_to_many(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  TwoHeads alone, net;
  net->load_state_dict(alone->state_dict());
  loss_of(alone(whole_batch(group->size(), 0))).backward();
  Ddp ddp(net, group);
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  std::vector<Tensor> expected, found;
  for (const Tensor& parameter : alone->parameters())
    expected.push_back(parameter.grad());
  for (const Tensor& parameter : net->parameters())
    found.push_back(parameter.grad());
  return compare(values_of(found), values_of(expected));
}
const AddRankCase add_one_to_many("[004.10] the gradients of N ranks are those of one process on the whole batch",
                                  &check_one_to_many, everywhere({1, 2, 3}));

// Generator and discriminator, with an optimizer and a wrapper each; gradients are set to none or to zero in between.
std::string check_two_optimizers(const dist::ProcessGroupPtr& group) {
  std::vector<Values> ends;
  for (const bool set_to_none : {true, false}) {
    manual_seed(1);
    nn::Linear generator(4, 4), discriminator(4, 1);
    dist::DistributedDataParallel g(generator, group), d(discriminator, group);
    optim::Adam of_g(generator->parameters(), {.lr = 0.01}), of_d(discriminator->parameters(), {.lr = 0.01});
    for (int step = 0; step < 4; ++step) {
      const Tensor noise = batch_of(group->rank(), step).to(kFloat32);
      const Tensor fake = g(noise);
      of_d.zero_grad(set_to_none);
      mean(square(d(fake.detach()) + 1.0)).backward();
      of_d.step();
      of_g.zero_grad(set_to_none);
      const Tensor opinion = d(fake);
      mean(square(opinion - 1.0)).backward();
      of_g.step();
    }
    if (!dist::verify_consistency(*group, generator).consistent()) return "the generators differ";
    if (!dist::verify_consistency(*group, discriminator).consistent()) return "the discriminators differ";
    std::vector<Tensor> all = generator->parameters();
    std::ranges::copy(discriminator->parameters(), std::back_inserter(all));
    ends.push_back(values_of(all));
  }
  return ends[0] == ends[1] ? "" : "zero_grad(false) trains otherwise than zero_grad(true)";
}
const AddRankCase add_two_optimizers("[000.3] [000.6] two optimizers that step in turn, with zero_grad of either kind",
                                     &check_two_optimizers, everywhere({2, 3}));

}  // namespace brigade::test::known_failures_cases
