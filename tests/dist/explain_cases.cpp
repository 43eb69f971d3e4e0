// What DDP explains of its parameters at any time: which ranks used them, when they were reduced, which optimizer holds
// them, and what wrote them last.
#include "nets.h"
#include "rank_case.h"

#include <brigade/autograd/grad_mode.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/adam.h>
#include <brigade/optim/sgd.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

namespace brigade::test::explain_cases {
using Wrapper = dist::DistributedDataParallel<BranchingNet>;

// The line of `place` in this file, so that tests can name lines by variables; 0 elsewhere.
uint32_t line_of(const Place& place) { return place.file.ends_with("explain_cases.cpp") ? place.line : 0; }

void backward(Wrapper& ddp, int rank) { square(ddp(full({2, 4}, 1.0 + rank))).mean().backward(); }

const dist::ExplainedParameter& find(const dist::Explanation& explanation, const std::string& name) {
  for (const dist::ExplainedParameter& each : explanation.parameters) {
    if (each.name == name) return each;
  }
  throw ValueError("{} is not explained", name);
}

std::string list(const std::optional<std::vector<int>>& ranks) {
  return ranks ? fmt::format("[{}]", fmt::join(*ranks, " ")) : "not known";
}

// "used=1 users=2 by=[0 1] bucket=0 ready=3 last=1"
std::string use_of(const dist::ExplainedParameter& p) {
  const auto or_dash = [](const auto& value) { return value ? fmt::format("{}", static_cast<int>(*value)) : "-"; };
  return fmt::format("used={} users={} by={} bucket={} ready={} last={}", or_dash(p.used), or_dash(p.users),
                     list(p.used_by), or_dash(p.bucket), or_dash(p.ready), p.last_used);
}

std::string expect_same(const std::string& found, const std::string& expected) {
  return found == expected ? "" : fmt::format("found '{}', expected '{}'", found, expected);
}

// The first result that is not "".
std::string first_of(std::initializer_list<std::string> results) {
  for (const std::string& each : results) {
    if (!each.empty()) return each;
  }
  return "";
}

std::string check_use(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group, {.find_unused_parameters = true});
  const int n = group->size();
  const int rank = group->rank();
  const std::string before = use_of(find(ddp.explain(), "b.weight"));
  backward(ddp, rank);  // all ranks use all
  const std::string first = use_of(find(ddp.explain(), "a.weight"));
  net->skip_b = rank > 0;  // rank 0 alone uses b
  backward(ddp, rank);
  const std::string second = use_of(find(ddp.explain(), "b.weight"));
  const dist::Explanation asked = ddp.explain_with_peers();
  net->skip_b = true;
  backward(ddp, rank);
  const std::string third = use_of(find(ddp.explain(), "b.weight"));
  std::string all;
  for (int r = 0; r < n; ++r)
    all += fmt::format("{}{}", r > 0 ? " " : "", r);
  // With two ranks, or on the only user, the flags determine which ranks used it.
  const bool clear = rank == 0 || n == 2;
  return first_of({expect_same(before, "used=- users=- by=not known bucket=- ready=- last=0"),
                   expect_same(first, fmt::format("used=1 users={} by=[{}] bucket=0 ready=4 last=1", n, all)),
                   expect_same(second, fmt::format("used={} users=1 by={} bucket=0 ready={} last=2", rank == 0 ? 1 : 0,
                                                   clear ? "[0]" : "not known", rank == 0 ? "2" : "-")),
                   expect_same(list(find(asked, "b.weight").used_by), "[0]"),
                   expect_same(list(find(asked, "a.weight").used_by), "[" + all + "]"),
                   expect_same(third, "used=0 users=0 by=[] bucket=0 ready=- last=2")});
}

// The error exchanges the flags of all ranks: each knows which ranks used a parameter.
std::string check_after_an_error(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group);
  backward(ddp, group->rank());
  const bool was_failed = ddp.explain().failed;
  net->skip_b = group->rank() == 0;
  const std::string thrown = expect_error<dist::ReductionError>([&] { backward(ddp, group->rank()); }, {"b.weight"});
  const dist::Explanation explanation = ddp.explain();
  std::string others;
  for (int r = 1; r < group->size(); ++r)
    others += fmt::format("{}{}", r > 1 ? " " : "", r);
  return first_of({thrown, was_failed ? "a sound backward is called failed" : "",
                   explanation.failed && !explanation.broken ? "" : "the error is not told",
                   expect_same(fmt::format("{}", explanation.backward), "2"),
                   expect_same(list(find(explanation, "b.bias").used_by), "[" + others + "]")});
}

std::string check_buckets(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  // A bucket for each layer's bias and weight: 8 x 8 floats are 256 bytes.
  Wrapper ddp(net, group, {.bucket_cap_mb = 100.0 / (1 << 20), .first_bucket_mb = 100.0 / (1 << 20)});
  backward(ddp, group->rank());
  backward(ddp, group->rank());
  std::string found;
  for (const dist::ExplainedParameter& each : ddp.explain().parameters)
    found += fmt::format("{} {} {}; ", each.name, each.bucket.value_or(99), each.ready.value_or(99));
  // The buckets and ready order, from the reducer itself.
  std::string expected;
  const auto layout = ddp.reducer().buckets().layouts();
  for (const auto& [name, parameter] : static_cast<const nn::Module&>(*net.ptr()).named_parameters()) {
    const auto position = static_cast<uint32_t>(ddp.reducer().find(parameter));
    size_t bucket = 0;
    while (std::ranges::count(layout[bucket].parameters, position) == 0)
      ++bucket;
    const auto& order = ddp.reducer().past().ready_order;
    expected += fmt::format("{} {} {}; ", name, bucket, std::ranges::find(order, position) - order.begin());
  }
  return first_of({expect_same(found, expected), layout.size() > 1 ? "" : "one bucket only"});
}

std::string check_local(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group);
  backward(ddp, group->rank());
  net->zero_grad();
  uint32_t line = 0;
  {
    const auto local = ddp.no_sync();
    backward(ddp, group->rank());
    square(ddp(full({2, 4}, 1.0))).mean().backward(), line = __LINE__;
  }
  const dist::ExplainedParameter now = find(ddp.explain(), "c.bias");
  backward(ddp, group->rank());
  const dist::ExplainedParameter later = find(ddp.explain(), "c.bias");
  return first_of(
      {expect_same(fmt::format("{} at {}", now.local_backwards, line_of(now.local_at)), fmt::format("2 at {}", line)),
       expect_same(fmt::format("{}", later.local_backwards), "0")});
}

std::string check_holders(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group);
  optim::SGD body({net->a->weight, net->a->bias}, {.lr = 0.1});
  const auto held = [&](const std::string& name) {
    return fmt::format("{}", fmt::join(find(ddp.explain(), name).optimizers, ", "));
  };
  std::string during;
  {
    optim::SGD second({net->b->weight, net->a->bias}, {.lr = 0.1});
    optim::AdamW third({net->b->bias}, {.lr = 0.1});
    during = held("a.weight") + "; " + held("a.bias") + "; " + held("b.weight") + "; " + held("b.bias");
  }
  return first_of({expect_same(during, "SGD; SGD, SGD#2; SGD#2; AdamW"), expect_same(held("a.bias"), "SGD"),
                   expect_same(held("b.weight"), "")});
}

std::string check_writes(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  const uint32_t wrapped = __LINE__ + 1;
  Wrapper ddp(net, group, {.find_unused_parameters = true});
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const auto written = [&](const std::string& name) {
    const dist::ExplainedParameter each = find(ddp.explain(), name);
    return fmt::format("{} at {}", each.written_by.empty() ? "not known" : each.written_by, line_of(each.written_at));
  };
  std::string problem = expect_same(written("a.weight"), fmt::format("wrapping at {}", wrapped));
  net->skip_b = true;  // b has no gradient: it is not moved
  backward(ddp, group->rank());
  const uint32_t stepped = __LINE__ + 1;
  optimizer.step();
  if (problem.empty()) problem = expect_same(written("a.weight"), fmt::format("step of SGD at {}", stepped));
  if (problem.empty()) problem = expect_same(written("b.weight"), fmt::format("wrapping at {}", wrapped));
  uint32_t edited = 0;
  {
    const NoGradGuard no_grad;
    edited = __LINE__ + 1;
    net->a->weight.mul_(0.5);
    net->b->weight.slice(0, 0, 1).zero_();  // by a view
  }
  if (problem.empty()) problem = expect_same(written("a.weight"), fmt::format("mul_ at {}", edited));
  if (problem.empty()) problem = expect_same(written("b.weight"), fmt::format("zero_ at {}", edited + 1));
  if (problem.empty()) problem = expect_same(written("a.bias"), fmt::format("step of SGD at {}", stepped));
  net->a->bias.bump_version();  // as code that writes its bytes does
  if (problem.empty()) problem = expect_same(written("a.bias"), fmt::format("not known at {}", stepped));
  for (int i = 0; i < 20000; ++i) {  // more than the log of all writes keeps
    const NoGradGuard no_grad;
    net->c->bias.mul_(1.0);
  }
  if (problem.empty()) problem = expect_same(written("a.weight"), fmt::format("mul_ at {}", edited));
  return problem;
}

std::string check_states(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  net->c->weight.requires_grad_(false);
  Wrapper ddp(net, group, {.find_unused_parameters = true, .parameters_and_buffers_to_ignore = {"c.bias"}});
  backward(ddp, group->rank());
  net->b->bias.requires_grad_(false);
  net->a = net->replace_module("a", nn::Linear(4, 8));
  std::string found;
  for (const dist::ExplainedParameter& each : ddp.explain().parameters)
    found += each.name + ": " + each.state + "\n";
  return expect_same(found,
                     "a.weight: trainable, unknown to the reducer\n"
                     "a.bias: trainable, unknown to the reducer\n"
                     "b.weight: reduced\n"
                     "b.bias: frozen after wrapping\n"
                     "c.weight: frozen\n"
                     "c.bias: ignored\n"
                     "a.weight: reduced, no longer in the module\n"
                     "a.bias: reduced, no longer in the module\n");
}

std::string check_no_collective(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group);
  backward(ddp, group->rank());
  const uint64_t before = group->flight_recorder().entries().back().sequence;
  for (int i = 0; i < group->rank() + 1; ++i)  // a different number of calls on each rank
    static_cast<void>(ddp.explain());
  return group->flight_recorder().entries().back().sequence == before ? "" : "explain() called a collective";
}

std::string check_texts(const dist::ProcessGroupPtr& group) {
  BranchingNet net;
  Wrapper ddp(net, group, {.find_unused_parameters = true});
  optim::SGD optimizer({net->a->weight}, {.lr = 0.1});
  backward(ddp, group->rank());
  net->skip_b = true;
  backward(ddp, group->rank());
  optimizer.step();
  const dist::Explanation explanation = ddp.explain();
  const std::string table = explanation.table();
  for (const char* part : {"DDP(BranchingNet) on rank ", ": after backward 2 (", "by all ranks", "by no rank",
                           "bucket 0, never ready, last used in backward 1", "bucket 0, ready as number 4", "SGD",
                           "none", "step of SGD at ", "wrapping at "}) {
    if (table.find(part) == std::string::npos) return fmt::format("'{}' is missing in\n{}", part, table);
  }
  const auto json = nlohmann::json::parse(explanation.json());
  const auto& b = json.at("parameters").at(2);
  return first_of({expect_same(b.at("name"), "b.weight"), expect_same(b.at("used_by").dump(), "[]"),
                   expect_same(b.at("ready").dump(), "null"), expect_same(b.at("last_used").dump(), "1"),
                   expect_same(json.at("backward").dump(), "2")});
}

const AddRankCase use("explain: who used a parameter, as far as the flags tell", check_use, everywhere({2, 3}));
const AddRankCase error("explain: after an error all ranks know who used what", check_after_an_error);
const AddRankCase buckets("explain: bucket and order", check_buckets);
const AddRankCase local("explain: backwards under no_sync are named until they are reduced", check_local);
const AddRankCase held("explain: the optimizers that hold a parameter, while they live", check_holders);
const AddRankCase writes("explain: the line that wrote a parameter last", check_writes);
const AddRankCase states("explain: frozen, thawed, ignored and replaced parameters", check_states);
const AddRankCase quiet("explain: no collective", check_no_collective);
const AddRankCase texts("[004.9] explain: a table and JSON", check_texts);

}  // namespace brigade::test::explain_cases
