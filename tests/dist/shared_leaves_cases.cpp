// Parameters that several wrappers manage: a module that is wrapped again while its old wrapper lives, and a layer of two
// wrapped modules. PyTorch trains both; each gradient is averaged once.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/ddp/join.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace brigade::test::shared_leaves_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

namespace {

// --- A module that is wrapped again.

// Thaws a layer after half of the steps.
void check_wrapped_again(const std::string& backend, int ranks) {
  const auto thaw = [](Net& net, int s) { return net->a->requires_grad_(s >= kSteps / 2), s == kSteps / 2; };
  const Values expected = reference([&](Net& net, optim::Optimizer& optimizer, int s) {
    thaw(net, s);
    optimizer.zero_grad();
    loss_of(net(whole_batch(ranks, s))).backward();
    optimizer.step();
  });
  for (const bool views : {true, false}) {
    for (const bool old_stays : {false, true}) {
      CAPTURE(views);
      CAPTURE(old_stays);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Net net;
        thaw(net, 0);
        const dist::DDPOptions options{.gradient_as_bucket_view = views};
        auto ddp = std::make_unique<Ddp>(net, group, options);
        std::unique_ptr<Ddp> old;
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < kSteps; ++s) {
          if (thaw(net, s)) {
            if (old_stays) old = std::move(ddp);
            ddp = std::make_unique<Ddp>(net, group, options);  // the old one goes after the new one is made
          }
          optimizer.zero_grad();
          loss_of((*ddp)(batch_of(group->rank(), s))).backward();
          optimizer.step();
        }
        if (!ddp->advisories().empty()) return "told: " + ddp->advisories().front().message;
        if (old && old->reducer().rounds() != kSteps / 2) return "the old wrapper has reduced on";
        if (std::string wrong = compare(values_of(net->parameters()), expected); !wrong.empty()) return wrong;
        // The other way round: the new wrapper goes, and the old one reduces again.
        if (!old) return "";
        ddp.reset();
        net->a->requires_grad_(false);
        net->zero_grad();
        loss_of((*old)(batch_of(group->rank(), 0))).backward();
        const Values here = values_of({net->c->weight.grad(), net->b->weight.grad()});
        const double mine = here.front();
        const Tensor sum = group->allocate(1, kFloat64);
        sum.data_ptr<double>()[0] = mine;
        group->all_reduce(sum, {.op = dist::ReduceOp::Avg})->wait();
        return std::abs(sum.data_ptr<double>()[0] - mine) < 1e-15 && old->reducer().rounds() == kSteps / 2 + 1
                   ? ""
                   : "the old wrapper does not reduce after the new one is gone";
      });
    }
  }
}
const AddRankCase add_wrapped_again("a module is wrapped again while its old wrapper lives", &check_wrapped_again);

// What the new wrapper looks at outlives the old one.
std::string check_writes_after(const dist::ProcessGroupPtr& group) {
  Net net;
  auto ddp = std::make_unique<Ddp>(net, group);
  ddp = std::make_unique<Ddp>(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int s = 0; s < 2; ++s) {
    optimizer.zero_grad();
    loss_of((*ddp)(batch_of(group->rank(), s))).backward();
    optimizer.step();
  }
  {
    const NoGradGuard no_grad;
    if (group->rank() == 1) net->b->weight.mul_(1.5);
  }
  optimizer.zero_grad();
  loss_of((*ddp)(batch_of(group->rank(), 2))).backward();
  return expect_error<dist::ConsistencyError>([&] { optimizer.step(); }, {"b.weight", "mul_"});
}
const AddRankCase add_writes_after("a weight that one rank writes is told by a wrapper whose predecessor is gone",
                                   &check_writes_after);

// Fails in the new wrapper as ever.
std::string check_missing_after(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp old(net, group);
  Ddp ddp(net, group);
  std::string wrong = expect_error<dist::ReductionError>(
      [&] {
        const Tensor out = brigade::tanh(net->a(batch_of(group->rank(), 0)));
        const Tensor kept = group->rank() == 1 ? out.detach() : out;
        (loss_of(ddp(batch_of(group->rank(), 0)).detach()) + loss_of(net->c(brigade::tanh(net->b(kept))))).backward();
      },
      {"a.weight"});
  if (!wrong.empty()) return wrong;
  if (net->b->weight.grad().defined()) return "gradients of a backward that is an error were kept";
  loss_of(ddp(batch_of(group->rank(), 1))).backward();
  return old.reducer().rounds() == 0 ? "" : "the old wrapper has reduced";
}
const AddRankCase add_missing_after("a parameter that one rank leaves out is told by the wrapper that is used",
                                    &check_missing_after);

// --- A layer of two modules.

struct HeadImpl : nn::Module {
  Net body{nullptr};
  nn::Linear head{nullptr};
  bool without_bias = false, without_head = false;
  HeadImpl(Net shared, int64_t outputs) {
    head = register_module("head", nn::Linear(3, outputs));
    to(kFloat64);
    body = register_module("body", std::move(shared));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(body(x));
    if (without_head) return features;
    return without_bias ? matmul(features, head->weight.t()) : head(features);
  }
};
BRIGADE_MODULE(Head);
using DdpHead = dist::DistributedDataParallel<Head>;

struct Heads {
  Net body;
  Head first{body, 2}, second{body, 5};
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = first->parameters();
    all.push_back(second->head->weight);
    all.push_back(second->head->bias);
    return all;
  }
};

// How the losses of two heads reach the gradients that a step moves by. `guard` is no_sync() of a head.
using Forward = std::function<Tensor(const Tensor&)>;
struct Guards {
  std::function<void(const std::function<void()>&)> without_first, without_second;
};
using Backwards = std::function<void(const Forward&, const Forward&, const Tensor&, const Guards&)>;

struct Way {
  const char* name;
  Backwards run;
};
const Way kWays[] = {
    {"one loss", [](const Forward& a, const Forward& b, const Tensor& x,
                    const Guards&) { (loss_of(a(x)) + mean(abs(b(x)))).backward(); }},
    {"one loss after the other",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards&) {
       loss_of(a(x)).backward();
       mean(abs(b(x))).backward();
     }},
    {"both forwards, then both backwards",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards&) {
       const Tensor of_a = loss_of(a(x));
       const Tensor of_b = mean(abs(b(x)));
       of_a.backward();
       of_b.backward();
     }},
    {"the backwards in another order",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards&) {
       const Tensor of_a = loss_of(a(x));
       const Tensor of_b = mean(abs(b(x)));
       of_b.backward();
       of_a.backward();
     }},
    {"the second twice, and the first in between",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards&) {
       mean(abs(b(x))).backward();
       loss_of(a(x)).backward();
       mean(abs(b(x * 0.5))).backward();
     }},
    {"one loss twice, which gathers",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards&) {
       for (const double factor : {1.0, 0.5})
         (loss_of(a(x * factor)) + mean(abs(b(x * factor)))).backward();
     }},
    {"both gather, then both are reduced",
     [](const Forward& a, const Forward& b, const Tensor& x, const Guards& guards) {
       guards.without_first([&] { loss_of(a(x * 0.5)).backward(); });
       guards.without_second([&] { mean(abs(b(x * 0.5))).backward(); });
       loss_of(a(x)).backward();
       mean(abs(b(x))).backward();
     }},
};

void check_two_heads(const std::string& backend, int ranks) {
  const auto direct = [](const std::function<void()>& body) { body(); };
  for (const Way& way : kWays) {
    manual_seed(1);
    Heads alone;
    optim::SGD plain(alone.parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < kSteps; ++s) {
      plain.zero_grad();
      way.run([&](const Tensor& x) { return alone.first(x); }, [&](const Tensor& x) { return alone.second(x); },
              whole_batch(ranks, s), {direct, direct});
      plain.step();
    }
    const Values expected = values_of(alone.parameters());
    for (const bool views : {true, false}) {
      CAPTURE(way.name);
      CAPTURE(views);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Heads heads;
        DdpHead a(heads.first, group, {.gradient_as_bucket_view = views});
        DdpHead b(heads.second, group);
        optim::SGD optimizer(heads.parameters(), {.lr = 0.1, .momentum = 0.9});
        const auto without = [](DdpHead& ddp) {
          return [&ddp](const std::function<void()>& body) {
            const auto guard = ddp.no_sync();
            body();
          };
        };
        for (int s = 0; s < kSteps; ++s) {
          optimizer.zero_grad();
          way.run([&](const Tensor& x) { return a(x); }, [&](const Tensor& x) { return b(x); },
                  batch_of(group->rank(), s), {without(a), without(b)});
          optimizer.step();
        }
        for (const DdpHead* each : {&a, &b}) {
          if (!each->advisories().empty()) return "told: " + each->advisories().front().message;
        }
        return compare(values_of(heads.parameters()), expected, 1e-11);
      });
    }
  }
}
const AddRankCase add_two_heads("a body with two heads, each wrapped with it", &check_two_heads);

// Each averages by itself what is its own, and names what is missing there.
std::string check_missing_bias(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  heads.second->without_bias = group->rank() == 1;
  const Tensor x = batch_of(group->rank(), 0);
  std::string wrong =
      expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                         {"head.bias", "never ready on rank 1", "module `head` was never called"});
  if (!wrong.empty()) return wrong;
  if (!heads.first->head->weight.grad().defined() || heads.second->head->weight.grad().defined())
    return "not the gradients of the second wrapper were cleared";
  heads.second->without_bias = false;
  (loss_of(a(x)) + mean(abs(b(x)))).backward();
  return "";
}
const AddRankCase add_missing_bias("a bias that one rank leaves out is missing in its own wrapper",
                                   &check_missing_bias);

// Also where another wrapper averages all that the backward does reach.
std::string check_missing_head(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  heads.second->without_head = true;
  const Tensor x = batch_of(group->rank(), 0);
  return expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                            {"head.weight", "head.bias", "module `head` was never called"});
}
const AddRankCase add_missing_head("a head that all ranks leave out is missing, though its body is averaged elsewhere",
                                   &check_missing_head);

// What one rank leaves out, where that is allowed, gets the others' gradient there as well.
void check_unused_on_one_rank(const std::string& backend, int ranks) {
  const auto term_of = [](const Tensor& a, int rank) { return loss_of(rank == 1 ? zeros_like(a) : a); };
  manual_seed(1);
  Heads alone;
  optim::SGD plain(alone.parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    for (int r = 0; r < ranks; ++r) {
      const Tensor x = batch_of(r, s);
      ((term_of(alone.first(x), r) + mean(abs(alone.first->head(x.narrow(1, 0, 3))))) / ranks).backward();
      (mean(abs(alone.second(x))) / ranks).backward();
    }
    plain.step();
  }
  const Values expected = values_of(alone.parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Heads heads;
    DdpHead a(heads.first, group, {.find_unused_parameters = true});
    DdpHead b(heads.second, group);
    optim::SGD optimizer(heads.parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < kSteps; ++s) {
      const Tensor x = batch_of(group->rank(), s);
      optimizer.zero_grad();
      (term_of(a(x), group->rank()) + mean(abs(heads.first->head(x.narrow(1, 0, 3))))).backward();
      mean(abs(b(x))).backward();
      optimizer.step();
    }
    return compare(values_of(heads.parameters()), expected, 1e-11);
  });
}
const AddRankCase add_unused_on_one_rank("a shared body that one rank leaves out of the first of two backwards",
                                         &check_unused_on_one_rank);

// A rank whose loss leaves out one head, so that the other wrapper averages the body.
std::string check_left_out_head(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  const Tensor x = batch_of(group->rank(), 0);
  const Tensor of_a = a(x);
  return expect_error<dist::DistError>(
      [&] { (loss_of(group->rank() == 1 ? of_a.detach() : of_a) + mean(abs(b(x)))).backward(); },
      {"reaches nothing of DDP(Head) on rank 1"});
}
const AddRankCase add_left_out_head("a rank that leaves out one head is told", &check_left_out_head);

// Steps inside of backward: of each parameter one.
void check_steps_in_backward(const std::string& backend, int ranks) {
  manual_seed(1);
  Heads alone;
  optim::SGD plain(alone.parameters(), {.lr = 0.1});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    const Tensor x = whole_batch(ranks, s);
    (loss_of(alone.first(x)) + mean(abs(alone.second(x)))).backward();
    plain.step();
  }
  const Values expected = values_of(alone.parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Heads heads;
    DdpHead a(heads.first, group, {.bucket_cap_mb = 1e-4});
    DdpHead b(heads.second, group, {.bucket_cap_mb = 1e-4});
    const auto make = [](std::vector<Tensor> parameters) {
      return std::make_unique<optim::SGD>(std::move(parameters), optim::SGDOptions{.lr = 0.1});
    };
    a.apply_optimizer_in_backward(make);
    b.apply_optimizer_in_backward(make);
    for (int s = 0; s < kSteps; ++s) {
      const Tensor x = batch_of(group->rank(), s);
      (loss_of(a(x)) + mean(abs(b(x)))).backward();
    }
    return compare(values_of(heads.parameters()), expected, 1e-11);
  });
}
const AddRankCase add_steps_in_backward("optimizers of two wrappers that step in backward move a shared layer once",
                                        &check_steps_in_backward);

// Who follows buckets hears of each parameter once.
std::string check_followed(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  std::vector<std::string> told;
  for (DdpHead* const each : {&a, &b}) {
    dist::Reducer& reducer = each->reducer();
    reducer.follow_buckets({.reduced = [&](std::span<const uint32_t> parameters, SourceLocation) {
      for (const uint32_t i : parameters)
        told.push_back(reducer.parameters()[i].name);
    }});
  }
  const Tensor x = batch_of(group->rank(), 0);
  (loss_of(a(x)) + mean(abs(b(x)))).backward();
  std::ranges::sort(told);
  const std::vector<std::string> expected = {"body.a.bias", "body.a.weight", "body.b.bias", "body.b.weight",
                                             "body.c.bias", "body.c.weight", "head.bias",   "head.bias",
                                             "head.weight", "head.weight"};
  return told == expected ? "" : fmt::format("told of {} parameters, expected {}", told.size(), expected.size());
}
const AddRankCase add_followed("of a shared parameter one wrapper's follower hears", &check_followed);

std::string check_explained(const dist::ProcessGroupPtr& group) {
  Heads heads;
  const DdpHead a(heads.first, group);
  const auto state = [&](const char* name) {
    for (const dist::ExplainedParameter& each : a.explain().parameters) {
      if (each.name == name) return each.state;
    }
    return std::string();
  };
  if (state("body.a.weight") != "reduced") return "alone: " + state("body.a.weight");
  {
    const DdpHead b(heads.second, group);
    if (state("body.a.weight") != "reduced, by several wrappers") return "shared: " + state("body.a.weight");
    if (state("head.weight") != "reduced") return "own: " + state("head.weight");
  }
  return state("body.a.weight") == "reduced" ? "" : "alone again: " + state("body.a.weight");
}
const AddRankCase add_explained("explain() says of a parameter that several wrappers reduce it", &check_explained);

// --- What nobody reaches.

struct CuttableImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool cut = false;
  CuttableImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(a(x));
    return b(cut ? features.detach() : features);
  }
};
BRIGADE_MODULE(Cuttable);

struct CuttableHeadImpl : nn::Module {
  Cuttable body{nullptr};
  nn::Linear head{nullptr};
  explicit CuttableHeadImpl(Cuttable shared) {
    head = register_module("head", nn::Linear(3, 2));
    to(kFloat64);
    body = register_module("body", std::move(shared));
  }
  Tensor forward(const Tensor& x) { return head(body(x)); }
};
BRIGADE_MODULE(CuttableHead);

// The same text on all ranks, by the wrapper that was used. Then training goes on.
std::string check_cut_everywhere(const dist::ProcessGroupPtr& group) {
  const Tensor x = batch_of(group->rank(), 0);
  Cuttable net;
  dist::DistributedDataParallel old(net, group), ddp(net, group);
  loss_of(ddp(x)).backward();
  net->zero_grad();
  net->cut = true;
  std::string wrong = expect_error<dist::ReductionError>(
      [&] { loss_of(ddp(x)).backward(); },
      {"cut by detach()", "parameters: a.weight, a.bias (320 B): never ready on ranks 0", "backward number 2"});
  if (!wrong.empty()) return wrong;
  net->cut = false;
  loss_of(ddp(x)).backward();
  if (old.reducer().rounds() != 0) return "the old wrapper has reduced";

  Cuttable body;
  CuttableHead first(body), second(body);
  dist::DistributedDataParallel a(first, group), b(second, group);
  body->cut = true;
  wrong = expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                             {"body.a.weight, body.a.bias (320 B): never ready on ranks 0"});
  if (!wrong.empty()) return "one loss: " + wrong;
  wrong = expect_error<dist::ReductionError>([&] { loss_of(b(x)).backward(); }, {"body.a.weight"});
  return wrong.empty() ? "" : "one head: " + wrong;
}
const AddRankCase add_cut_everywhere(
    "what all ranks cut off is missing in a module that is wrapped again, and in a shared body", &check_cut_everywhere);

// With static_graph it is enough that one rank reaches less.
std::string check_static_graph(const dist::ProcessGroupPtr& group) {
  Cuttable net;
  const dist::DDPOptions options{.static_graph = true};
  dist::DistributedDataParallel old(net, group, options), ddp(net, group, options);
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  net->zero_grad();
  net->cut = group->rank() == 1;
  return expect_error<dist::ReductionError>([&] { loss_of(ddp(batch_of(group->rank(), 1))).backward(); },
                                            {"used in the first backward", "a.weight, a.bias (320 B) on rank 1"});
}
const AddRankCase add_static_graph("static_graph: a module that is wrapped again uses what it used at first",
                                   &check_static_graph);

// --- Beside.

// A head that is called without its wrapper averages what it shares.
std::string check_called_child(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group), b(heads.second, group);
  const Tensor x = batch_of(group->rank(), 0);
  mean(abs(b(x))).backward();
  loss_of(heads.first(x)).backward();
  return a.reducer().rounds() == 1 && b.reducer().rounds() == 1 ? "" : "not each has reduced once";
}
const AddRankCase add_called_child("a head that is called without its wrapper averages the body with it",
                                   &check_called_child);

// Ranks with other numbers of batches, in a join of the new wrapper alone.
void check_join(const std::string& backend, int ranks) {
  const auto batches_of = [](int rank) { return 1 + rank; };
  manual_seed(1);
  Net alone;
  optim::SGD plain(alone->parameters(), {.lr = 0.1});
  for (int s = 0; s < batches_of(ranks - 1); ++s) {
    plain.zero_grad();
    for (int r = 0; r < ranks; ++r) {
      if (s < batches_of(r)) (loss_of(alone(batch_of(r, s))) / static_cast<double>(ranks)).backward();
    }
    plain.step();
  }
  plain.zero_grad();
  loss_of(alone(whole_batch(ranks, 9))).backward();
  plain.step();
  const Values expected = values_of(alone->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Net net;
    const Ddp old(net, group);
    Ddp ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    const auto step = [&](int s) {
      optimizer.zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
    };
    dist::Join join(ddp);
    for (int s = 0; s < batches_of(group->rank()); ++s)
      step(s);
    join.finish();
    step(9);
    if (std::string wrong = compare(values_of(net->parameters()), expected); !wrong.empty()) return wrong;
    // Both look again.
    optimizer.options().lr = group->rank() == 1 ? 0.2 : 0.1;
    return expect_error<dist::ConsistencyError>([&] { step(10); }, {"lr of group 0 differs"});
  });
}
const AddRankCase add_join("a join of the wrapper that is used: that of the same module rests", &check_join);

// The mean stays a mean.
std::string check_gone_before_step(const dist::ProcessGroupPtr& group) {
  Heads heads;
  const DdpHead a(heads.first, group);
  auto b = std::make_unique<DdpHead>(heads.second, group);
  optim::SGD optimizer(heads.parameters(), {.lr = 0.1});
  const Tensor x = batch_of(group->rank(), 0);
  (loss_of(heads.first(x)) + mean(abs((*b)(x)))).backward();
  b.reset();
  optimizer.step();
  return expect_error<dist::ConsistencyError>(
      [&] {
        optimizer.zero_grad();
        (loss_of(heads.first(x)) + mean(abs(heads.second(x)))).backward();
        optimizer.step();
      },
      {"head.weight, head.bias", "belongs to no wrapped module"});
}
const AddRankCase add_gone_before_step("a wrapper that goes between backward and step leaves averaged gradients",
                                       &check_gone_before_step);

}  // namespace

}  // namespace brigade::test::shared_leaves_cases
