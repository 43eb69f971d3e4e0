// Strict mode when several backwards together reach the parameters: errors come in the next forward, as in PyTorch.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::disjoint_backwards_cases {

using mechanisms::batch_of;
using mechanisms::compare;
using mechanisms::loss_of;
using mechanisms::Values;
using mechanisms::values_of;

// Two layers side by side.
struct HeadsImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  HeadsImpl() {
    a = register_module("a", nn::Linear(4, 3));
    b = register_module("b", nn::Linear(4, 2));
    to(kFloat64);
  }
  std::pair<Tensor, Tensor> forward(const Tensor& x) { return {loss_of(a(x)), loss_of(b(x))}; }
};
BRIGADE_MODULE(Heads);

Values one_process(int ranks) {
  manual_seed(1);
  Heads heads;
  optim::SGD optimizer(heads->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < mechanisms::kSteps; ++s) {
    optimizer.zero_grad();
    for (int r = 0; r < ranks; ++r) {
      const auto [first, second] = heads(batch_of(r, s));
      ((first + second) / static_cast<double>(ranks)).backward();
    }
    optimizer.step();
  }
  return values_of(heads->parameters());
}

void check_disjoint(const std::string& backend, int ranks) {
  const Values expected = one_process(ranks);
  for (const bool views : {true, false}) {
    for (const double bucket_mb : {25.0, 1e-6}) {
      CAPTURE(views);
      CAPTURE(bucket_mb);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Heads heads;
        dist::DistributedDataParallel ddp(heads, group,
                                          {.gradient_as_bucket_view = views,
                                           .bucket_cap_mb = bucket_mb,
                                           .first_bucket_mb = bucket_mb,
                                           .report_at = dist::ReducerOptions::ReportAt::NextForward});
        optim::SGD optimizer(heads->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < mechanisms::kSteps; ++s) {
          optimizer.zero_grad();
          const auto [first, second] = ddp(batch_of(group->rank(), s));
          (s % 2 == 0 ? first : second).backward();
          (s % 2 == 0 ? second : first).backward();
          optimizer.step();
        }
        return compare(values_of(heads->parameters()), expected);
      });
    }
  }
}
const AddRankCase add_disjoint("two strict backwards over disjoint parameters are one step", &check_disjoint,
                               everywhere({2, 3}));

// By default the error comes in the first backward, when it is not known whether a second one follows.
std::string check_option_named(const dist::ProcessGroupPtr& group) {
  for (const auto report_at : {dist::ReducerOptions::ReportAt::Backward, dist::ReducerOptions::ReportAt::NextForward}) {
    Heads heads;
    dist::DistributedDataParallel ddp(heads, group, {.report_at = report_at});
    const Tensor x = batch_of(group->rank(), 0);
    const auto [first, second] = ddp(x);
    std::string text;
    try {
      first.backward();
      ddp(x);
      return "nothing was thrown";
    } catch (const dist::ReductionError& error) {
      text = error.what();
    }
    if (text.find("b.weight") == std::string::npos) return text;
    if (text.find("(More: brigade explain unused_parameters)") == std::string::npos) return text;
  }
  return "";
}
const AddRankCase add_option_named("the error of the first of two disjoint backwards says where more is said",
                                   &check_option_named, everywhere({2}));

std::string check_still_missing(const dist::ProcessGroupPtr& group) {
  Heads heads;
  dist::DistributedDataParallel ddp(heads, group, {.report_at = dist::ReducerOptions::ReportAt::NextForward});
  const Tensor x = batch_of(group->rank(), 0);
  // Parameters that all backwards miss are an error, once; reaching the same parameters again does not help.
  for (int round = 0; round < 2; ++round) {
    heads->zero_grad();
    ddp(x).first.backward();
    const std::string wrong = expect_error<dist::ReductionError>([&] { ddp(x); }, {"b.weight", "b.bias"});
    if (!wrong.empty()) return wrong;
  }
  heads->zero_grad();
  const auto [first, second] = ddp(x);
  first.backward({.retain_graph = true});
  first.backward();
  const std::string wrong = expect_error<dist::ReductionError>([&] { ddp(x); }, {"b.weight"});
  if (!wrong.empty()) return wrong;
  // After a complete backward, the next backward is judged on its own.
  heads->zero_grad();
  const auto again = ddp(x);
  (again.first + again.second).backward();
  ddp(x).second.backward();
  return expect_error<dist::ReductionError>([&] { ddp(x); }, {"a.weight"});
}
const AddRankCase add_still_missing("what no backward before the next forward has reached is an error there",
                                    &check_still_missing, everywhere({2}));

// The last rank detaches one of three losses, whose parameters the others reach: only the last rank is reported.
std::string check_missing_on_one(const dist::ProcessGroupPtr& group) {
  mechanisms::Net net;  // a, b and c
  dist::DistributedDataParallel ddp(net, group, {.report_at = dist::ReducerOptions::ReportAt::NextForward});
  const int last = group->size() - 1;
  const Tensor x = batch_of(group->rank(), 0);
  static_cast<void>(ddp(x));
  const Tensor features = ones({2, 8}, kFloat64);
  const unsigned line = __LINE__ + 1;
  const Tensor second = group->rank() == last ? net->b(features).detach() : net->b(features);
  loss_of(net->a(x)).backward();
  (loss_of(second) + 0.0 * sum(net->a->bias)).backward();
  loss_of(net->c(features)).backward();
  try {
    static_cast<void>(ddp(x));
  } catch (const dist::ReductionError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (error.verdicts().size() != 1 || verdict.parameters.size() != 2 || verdict.parameters[0].name != "b.weight")
      return error.what();
    if (verdict.parameters[0].missing_ranks != std::vector<int>{last}) return error.what();
    return verdict.cause.place.line == line ? "" : error.what();
  }
  return "nothing was said";
}
const AddRankCase add_missing_on_one("what one rank misses in all of several backwards is missing on that rank only",
                                     &check_missing_on_one, everywhere({2, 3}));

// A gradient that is not the mean must not reach the step that comes before the next forward.
std::string check_no_mean(const dist::ProcessGroupPtr& group) {
  mechanisms::Net net;
  dist::DistributedDataParallel ddp(net, group, {.report_at = dist::ReducerOptions::ReportAt::NextForward});
  ddp.register_comm_hook(dist::make_comm_hook("sum", [](dist::ProcessGroup& g, const dist::GradBucket& bucket) {
    return g.all_reduce(bucket.buffer(), {.op = dist::ReduceOp::Sum});
  }));
  const Tensor loss = loss_of(ddp(batch_of(group->rank(), 0)));
  const std::string wrong = expect_error<dist::ReductionError>([&] { loss.backward(); }, {"Wrong result of hook"});
  if (!wrong.empty()) return wrong;
  return net->a->weight.grad().defined() ? "a gradient is left" : "";
}
const AddRankCase add_no_mean("gradients that are not the mean are an error at the end of that backward",
                              &check_no_mean, everywhere({2, 3}));

}  // namespace brigade::test::disjoint_backwards_cases
