// Options of a wrapper: which values they accept, and that the ranks have to agree on them.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <cmath>
#include <limits>

namespace brigade::test::ddp_options_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

std::string check_caps(const dist::ProcessGroupPtr& group) {
  const auto buckets = [&](double cap, double first) {
    Net net;
    return Ddp(net, group, {.bucket_cap_mb = cap, .first_bucket_mb = first}).reducer().buckets().layouts().size();
  };
  for (const double cap : {double{INFINITY}, 1e300, 1e13, 25.0}) {
    if (const size_t found = buckets(cap, cap); found != 1) return fmt::format("{} buckets with {} MiB", found, cap);
  }
  if (const size_t found = buckets(INFINITY, 1e-6); found != 2)
    return fmt::format("{} buckets after a small one", found);
  if (const size_t found = buckets(1e-300, 1e-300); found != 6) return fmt::format("{} buckets without room", found);
  for (const double cap : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
    const std::string wrong = expect_error<ValueError>([&] { buckets(cap, 1); }, {"bucket_cap_mb", "above 0"});
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_caps("a bucket without a cap holds everything", &check_caps, everywhere({2}));

std::string check_agreement(const dist::ProcessGroupPtr& group) {
  // The options of the last rank, and parts of the error's text.
  struct Row {
    dist::DDPOptions options;
    std::vector<std::string> parts;
  };
  const std::vector<Row> rows{
      {{.find_unused_parameters = true}, {"`find_unused_parameters`: true", "`find_unused_parameters`: false"}},
      {{.bucket_cap_mb = 3}, {"`bucket_cap_mb`: 25", "`bucket_cap_mb`: 3"}},
      {{.first_bucket_mb = INFINITY}, {"`first_bucket_mb`: 1", "`first_bucket_mb`: inf"}},
      {{.diagnosis = false}, {"`diagnosis`: false"}},
      {{.report_at = dist::ReducerOptions::ReportAt::NextForward}, {"`report_at`: NextForward"}},
      {{.check_steps = false}, {"`check_steps`: false"}},
      {{.verify_every = 7}, {"`verify_every`: 7"}},
      {{.parameters_and_buffers_to_ignore = {"c.bias", "a.bias"}}, {"a.bias, c.bias", "`: none"}},
  };
  const int last = group->size() - 1;
  for (const Row& row : rows) {
    std::vector<std::string> parts = row.parts;
    parts.push_back("The ranks wrap with different options");
    parts.push_back(fmt::format("rank {} has option", last));
    Net net;
    const std::string wrong = expect_error<dist::ConsistencyError>(
        [&] { Ddp(net, group, group->rank() == last ? row.options : dist::DDPOptions()); }, parts);
    if (!wrong.empty()) return wrong;
  }
  // Ranks may differ in gradient_as_bucket_view and in the order of names.
  Net net;
  const bool first = group->rank() == 0;
  Ddp ddp(net, group,
          {.gradient_as_bucket_view = first,
           .parameters_and_buffers_to_ignore =
               first ? std::vector<std::string>{"a.bias", "c.bias"} : std::vector<std::string>{"c.bias", "a.bias"}});
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  return "";
}
const AddRankCase add_agreement("options that differ between ranks are named at construction", &check_agreement,
                                everywhere({2, 3}));

std::string check_ignored_in_backward(const dist::ProcessGroupPtr& group) {
  const std::vector<std::string> ignored{"a.bias", "c.weight"};
  Values expected;
  for (const bool in_backward : {false, true}) {
    manual_seed(1);
    Net net;
    const auto make = [](std::vector<Tensor> parameters) {
      return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
    };
    const auto optimizer = make(net->parameters());
    {
      Ddp ddp(net, group, {.parameters_and_buffers_to_ignore = ignored});
      if (in_backward) {
        // A call that fails half-way leaves nothing behind.
        int made = 0;
        const auto failing = [&](std::vector<Tensor> parameters) {
          if (++made == 3) throw ValueError("no third optimizer");
          return make(std::move(parameters));
        };
        const std::string wrong =
            expect_error<ValueError>([&] { ddp.apply_optimizer_in_backward(failing); }, {"no third"});
        if (!wrong.empty()) return wrong;
        ddp.apply_optimizer_in_backward(make);
      }
      for (int s = 0; s < kSteps; ++s) {
        loss_of(ddp(batch_of(group->rank(), s))).backward();
        for (const Tensor& parameter : net->parameters()) {
          if (in_backward && parameter.grad().defined()) return "a gradient is left";
        }
        if (in_backward) continue;
        optimizer->step();
        optimizer->zero_grad();
      }
    }
    const Values found = values_of(net->parameters());
    if (in_backward) {
      const std::string wrong = compare(found, expected);
      if (!wrong.empty()) return wrong;
    }
    expected = found;
    // The wrapper is gone, and its optimizers with it.
    loss_of(net(batch_of(0, 0))).backward();
    if (values_of(net->parameters()) != found) return "an optimizer of a wrapper that is gone has stepped";
  }
  return "";
}
const AddRankCase add_ignored_in_backward("ignored parameters step in backward too, each rank's by its own gradient",
                                          &check_ignored_in_backward, everywhere({2, 3}));

std::string check_buffers_in_eval(const dist::ProcessGroupPtr& group) {
  const int rank = group->rank();
  nn::Sequential net(nn::Linear(3, 4), nn::BatchNorm1d(4));
  dist::DistributedDataParallel ddp(net, group);
  net->eval();
  const Tensor statistics = net->named_buffers().front().second;
  const auto set_apart = [&] {
    const NoGradGuard no_grad;
    statistics.fill_(1.0 + rank);
  };
  set_apart();
  const Tensor x = ones({2, 3});
  {
    const NoGradGuard no_grad;
    if (rank == 0) ddp(x);  // alone
  }
  if (statistics.to_vector<float>()[0] != 1.0F + static_cast<float>(rank)) return "an evaluation without gradients";
  // As in PyTorch, buffers are copied in the first forward and in the first one after each forward that syncs.
  const auto is_copied = [&](bool syncs) {
    set_apart();
    if (syncs) {
      mean(ddp(x)).backward();
    } else {
      const auto local = ddp.no_sync();
      mean(ddp(x)).backward();
    }
    return rank == 0 || statistics.to_vector<float>()[0] == 1.0F;
  };
  std::string copied;
  for (const bool syncs : {false, false, true, false, true, true, true})
    copied += is_copied(syncs) ? '1' : '0';
  return copied == (rank == 0 ? "1111111" : "1001011") ? "" : "rank 0's statistics were copied in forwards " + copied;
}
const AddRankCase add_buffers_in_eval("the first forward after one that syncs copies rank 0's buffers, in eval() too",
                                      &check_buffers_in_eval, everywhere({2, 3}));

// A model with unused layers before and after the used one: no ready time orders their parameters.
struct PartlyUsedImpl : nn::Module {
  nn::Linear before{nullptr}, used{nullptr}, after{nullptr};
  PartlyUsedImpl() {
    before = register_module("before", nn::Linear(4, 4));
    used = register_module("used", nn::Linear(4, 4));
    after = register_module("after", nn::Linear(4, 4));
  }
  Tensor forward(const Tensor& x) { return used(x); }
};
BRIGADE_MODULE(PartlyUsed);

std::string check_order(const dist::ProcessGroupPtr& group) {
  PartlyUsed net;
  dist::DistributedDataParallel ddp(net, group, {.static_graph = true, .bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
  sum(ddp(ones({2, 4}))).backward();
  std::vector<uint32_t> order;
  for (const dist::BucketLayout& bucket : ddp.reducer().buckets().layouts())
    order.insert(order.end(), bucket.parameters.begin(), bucket.parameters.end());
  if (order.size() != 6 || order[0] + order[1] != 5) return "what was ready comes first";
  return std::vector<uint32_t>(order.begin() + 2, order.end()) == std::vector<uint32_t>{0, 1, 4, 5}
             ? ""
             : "the order of those that were not ready";
}
const AddRankCase add_order("rebuilt buckets hold what was not ready last, smallest index first", &check_order,
                            everywhere({2}));

}  // namespace brigade::test::ddp_options_cases
