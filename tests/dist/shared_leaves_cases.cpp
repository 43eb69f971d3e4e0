// A layer that two wrapped modules share, which PyTorch trains too: each gradient is averaged once.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

#include <algorithm>
#include <memory>
#include <utility>

namespace brigade::test::shared_leaves_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

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

// How the losses of two heads reach the gradients that a step uses. Guards run a function under no_sync() of a head.
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

// What one process holds after its steps; `backward` runs the backwards of a step.
Values train_alone(double momentum, const std::function<void(Heads&, int)>& backward) {
  manual_seed(1);
  Heads alone;
  optim::SGD plain(alone.parameters(), {.lr = 0.1, .momentum = momentum});
  for (int s = 0; s < kSteps; ++s) {
    plain.zero_grad();
    backward(alone, s);
    plain.step();
  }
  return values_of(alone.parameters());
}

void check_two_heads(const std::string& backend, int ranks) {
  const auto direct = [](const std::function<void()>& body) { body(); };
  for (const Way& way : kWays) {
    const Values expected = train_alone(0.9, [&](Heads& alone, int s) {
      way.run([&](const Tensor& x) { return alone.first(x); }, [&](const Tensor& x) { return alone.second(x); },
              whole_batch(ranks, s), {direct, direct});
    });
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

// Each wrapper averages its own parameters by itself, and names those that are missing.
std::string check_missing_bias(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  heads.second->without_bias = group->rank() == 1;
  const Tensor x = batch_of(group->rank(), 0);
  std::string wrong =
      expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                         {"head.bias", "on rank 1, in backward", "module `head` was not called"});
  if (!wrong.empty()) return wrong;
  if (!heads.first->head->weight.grad().defined() || heads.second->head->weight.grad().defined())
    return "not the gradients of the second wrapper were cleared";
  heads.second->without_bias = false;
  (loss_of(a(x)) + mean(abs(b(x)))).backward();
  return "";
}
const AddRankCase add_missing_bias("a bias that one rank leaves out is missing in its own wrapper",
                                   &check_missing_bias);

// Also if another wrapper averages everything that the backward reaches.
std::string check_missing_head(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group);
  DdpHead b(heads.second, group);
  heads.second->without_head = true;
  const Tensor x = batch_of(group->rank(), 0);
  return expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                            {"head.weight", "head.bias", "module `head` was not called"});
}
const AddRankCase add_missing_head("a head that all ranks leave out is missing, though its body is averaged elsewhere",
                                   &check_missing_head);

// A parameter that one rank leaves unused, where that is allowed, gets the others' gradient on that rank as well.
void check_unused_on_one_rank(const std::string& backend, int ranks) {
  const auto term_of = [](const Tensor& a, int rank) { return loss_of(rank == 1 ? zeros_like(a) : a); };
  const Values expected = train_alone(0.9, [&](Heads& alone, int s) {
    for (int r = 0; r < ranks; ++r) {
      const Tensor x = batch_of(r, s);
      ((term_of(alone.first(x), r) + mean(abs(alone.first->head(x.narrow(1, 0, 3))))) / ranks).backward();
      (mean(abs(alone.second(x))) / ranks).backward();
    }
  });
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
const AddRankCase add_left_out_head("a rank that leaves out one head is reported", &check_left_out_head);

// Steps inside of backward: one per parameter.
void check_steps_in_backward(const std::string& backend, int ranks) {
  const Values expected = train_alone(0, [&](Heads& alone, int s) {
    const Tensor x = whole_batch(ranks, s);
    (loss_of(alone.first(x)) + mean(abs(alone.second(x)))).backward();
  });
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

// Followers of buckets get each parameter once.
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

std::string check_cut_body(const dist::ProcessGroupPtr& group) {
  const Tensor x = batch_of(group->rank(), 0);
  Cuttable body;
  CuttableHead first(body), second(body);
  dist::DistributedDataParallel a(first, group), b(second, group);
  body->cut = true;
  std::string wrong =
      expect_error<dist::ReductionError>([&] { (loss_of(a(x)) + mean(abs(b(x)))).backward(); },
                                         {"No gradient: body.a.weight, body.a.bias (320 B), on ranks 0"});
  if (!wrong.empty()) return "one loss: " + wrong;
  wrong = expect_error<dist::ReductionError>([&] { loss_of(b(x)).backward(); }, {"body.a.weight"});
  return wrong.empty() ? "" : "one head: " + wrong;
}
const AddRankCase add_cut_body("what all ranks cut off is missing in a shared body", &check_cut_body);

// A head that is called without its wrapper averages what it shares.
std::string check_called_child(const dist::ProcessGroupPtr& group) {
  Heads heads;
  DdpHead a(heads.first, group), b(heads.second, group);
  const Tensor x = batch_of(group->rank(), 0);
  mean(abs(b(x))).backward();
  loss_of(heads.first(x)).backward();
  return a.reducer().past().rounds == 1 && b.reducer().past().rounds == 1 ? "" : "not each has reduced once";
}
const AddRankCase add_called_child("a head that is called without its wrapper averages the body with it",
                                   &check_called_child);

// A mean stays a mean when its wrapper is destroyed.
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

// A block of a chain, which a rank may leave out (stochastic depth): then it records nothing.
struct BlockImpl : nn::Module {
  nn::Linear shared{nullptr}, own{nullptr};
  explicit BlockImpl(nn::Linear layer) {
    own = register_module("own", nn::Linear(4, 4));
    to(kFloat64);
    shared = register_module("shared", std::move(layer));
  }
  Tensor forward(const Tensor& x, bool skipped) { return skipped ? x : own(brigade::tanh(shared(x))); }
};
BRIGADE_MODULE(Block);

struct Chain {
  nn::Linear shared{4, 4};
  Block first{nullptr}, second{nullptr};
  Chain() {
    shared->to(kFloat64);
    first = Block(shared);
    second = Block(shared);
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = first->parameters();
    all.push_back(second->own->weight);
    all.push_back(second->own->bias);
    return all;
  }
};

// What rank 1 does in the second of three steps, in the micro-batch under no_sync and in the one that is reduced.
enum class Odd : uint8_t { Nothing, SkipsFirst, SkipsSecond, ReachesNothing };
struct ChainCase {
  const char* name;
  Odd gathering, reduced;
};
const ChainCase kChains[] = {
    {"the first block is skipped", Odd::Nothing, Odd::SkipsFirst},
    {"the second block is skipped", Odd::Nothing, Odd::SkipsSecond},
    {"the first block is skipped while it gathers", Odd::SkipsFirst, Odd::Nothing},
    {"the first block is skipped in all", Odd::SkipsFirst, Odd::SkipsFirst},
    {"the loss is of something else", Odd::ReachesNothing, Odd::ReachesNothing},
};

template <class First, class Second>
Tensor chain_loss(First&& first, Second&& second, const Tensor& x, Odd odd) {
  const Tensor result = second(first(x, odd == Odd::SkipsFirst), odd == Odd::SkipsSecond);
  if (odd != Odd::ReachesNothing) return loss_of(result);
  const Tensor other = zeros({1}, kFloat64);
  other.requires_grad_(true);
  return sum(other);
}

void check_chain(const std::string& backend, int ranks) {
  const auto odd_of = [](Odd odd, int rank, int step) { return rank == 1 && step == 1 ? odd : Odd::Nothing; };
  for (const ChainCase& each : kChains) {
    CAPTURE(each.name);
    manual_seed(1);
    Chain alone;
    optim::SGD plain(alone.parameters(), {.lr = 0.1});
    for (int s = 0; s < 3; ++s) {
      plain.zero_grad();
      for (int r = 0; r < ranks; ++r) {
        for (const Odd odd : {each.gathering, each.reduced})
          (chain_loss(alone.first, alone.second, batch_of(r, s), odd_of(odd, r, s)) / ranks).backward();
      }
      plain.step();
    }
    const Values expected = values_of(alone.parameters());
    expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
      manual_seed(1);
      Chain chain;
      const dist::DDPOptions options{
          .find_unused_parameters = true, .bucket_cap_mb = 1e-5, .first_bucket_mb = 1e-5, .diagnosis = false};
      dist::DistributedDataParallel<Block> a(chain.first, group, options), b(chain.second, group, options);
      optim::SGD optimizer(chain.parameters(), {.lr = 0.1});
      for (int s = 0; s < 3; ++s) {
        optimizer.zero_grad();
        const Tensor x = batch_of(group->rank(), s);
        {
          const auto a_waits = a.no_sync();
          const auto b_waits = b.no_sync();
          chain_loss(a, b, x, odd_of(each.gathering, group->rank(), s)).backward();
        }
        chain_loss(a, b, x, odd_of(each.reduced, group->rank(), s)).backward();
        optimizer.step();
      }
      return compare(values_of(chain.parameters()), expected, 1e-11);
    });
  }
}
const AddRankCase add_chain("who averages a shared layer does not depend on the blocks that a rank skips", &check_chain,
                            everywhere({2, 3}));

// No forward of a wrapper belongs to the last backward, and it reaches only the shared layer. Ranks that ran another
// number of backwards under no_sync before it average the layer in the same wrapper.
void check_unclaimed(const std::string& backend, int ranks) {
  manual_seed(1);
  Chain alone;
  for (int r = 0; r < ranks; ++r) {
    if (r == 0) (loss_of(alone.first(batch_of(r, 0), false)) / ranks).backward();
    (loss_of(alone.second(batch_of(r, 1), false)) / ranks).backward();
  }
  const Values expected = values_of({alone.shared->weight.grad(), alone.shared->bias.grad()});
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Chain chain;
    const dist::DDPOptions options{.find_unused_parameters = true};
    dist::DistributedDataParallel<Block> a(chain.first, group, options), b(chain.second, group, options);
    for (const nn::Linear& own : {chain.first->own, chain.second->own}) {
      own->weight.requires_grad_(false);
      own->bias.requires_grad_(false);
    }
    if (group->rank() == 0) {
      const auto waits = a.no_sync();
      loss_of(a(batch_of(0, 0), false)).backward();
    }
    loss_of(chain.second(batch_of(group->rank(), 1), false)).backward();
    return compare(values_of({chain.shared->weight.grad(), chain.shared->bias.grad()}), expected, 1e-11);
  });
}
const AddRankCase add_unclaimed("who averages a shared layer does not depend on earlier backwards under no_sync",
                                &check_unclaimed, everywhere({2, 3}));

// Rank 0 calls a module without its wrapper, so that the other wrapper averages the layer there.
std::string check_disagreement(const dist::ProcessGroupPtr& group) {
  for (const auto report_at : {dist::ReducerOptions::ReportAt::Backward, dist::ReducerOptions::ReportAt::NextForward}) {
    manual_seed(1);
    Heads heads;
    DdpHead a(heads.first, group, {.report_at = report_at}), b(heads.second, group, {.report_at = report_at});
    const Tensor x = batch_of(group->rank(), 0);
    const Tensor of_first = group->rank() == 0 ? heads.first(x) : a(x);
    const Tensor loss = loss_of(of_first) + mean(abs(b(x)));
    const std::string wrong = expect_error<dist::ReductionError>(
        [&] { loss.backward(); },
        {"The ranks do not agree which wrapper averages the shared parameter body.a.weight: rank 0 another one",
         " this one (at", "call the wrappers, not the modules in them"});
    if (!wrong.empty()) return wrong;
    for (const Tensor& each : heads.parameters())
      if (each.grad().defined()) return "a gradient is left";
  }
  return "";
}
const AddRankCase add_disagreement("ranks that average a shared layer in different wrappers get an error",
                                   &check_disagreement, everywhere({2, 3}));

}  // namespace brigade::test::shared_leaves_cases
