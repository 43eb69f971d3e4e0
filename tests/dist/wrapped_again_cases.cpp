// A module that is wrapped again while its old wrapper lives, as PyTorch allows: the wrapper that is used averages each
// gradient once, and the other one is silent.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

#include <brigade/dist/ddp/join.h>

#include <memory>

namespace brigade::test::wrapped_again_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

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
        if (old && old->reducer().past().rounds != kSteps / 2) return "the old wrapper has reduced on";
        if (std::string wrong = compare(values_of(net->parameters()), expected); !wrong.empty()) return wrong;
        // The other way round: the new wrapper is destroyed, and the old one reduces again.
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
        return std::abs(sum.data_ptr<double>()[0] - mine) < 1e-15 && old->reducer().past().rounds == kSteps / 2 + 1
                   ? ""
                   : "the old wrapper does not reduce after the new one is gone";
      });
    }
  }
}
const AddRankCase add_wrapped_again("a module is wrapped again while its old wrapper lives", &check_wrapped_again);

// What the new wrapper watches outlives the old wrapper.
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
const AddRankCase add_writes_after("a weight that one rank writes is reported by a wrapper whose predecessor is gone",
                                   &check_writes_after);

// The new wrapper reports a missing parameter as usual.
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
  return old.reducer().past().rounds == 0 ? "" : "the old wrapper has reduced";
}
const AddRankCase add_missing_after("a parameter that one rank leaves out is reported by the wrapper that is used",
                                    &check_missing_after);

// With another wrapper, which is older than the new one, in the same backward.
std::string check_thawed_beside(const dist::ProcessGroupPtr& group) {
  Net net, second;
  net->a->requires_grad_(false);
  auto ddp = std::make_unique<Ddp>(net, group);
  Ddp beside(second, group);
  ddp = std::make_unique<Ddp>(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const SourceLocation thawed = SourceLocation::current();
  if (group->rank() == 0) net->a->requires_grad_(true, thawed);
  const Tensor x = batch_of(group->rank(), 0);
  (loss_of((*ddp)(x)) + loss_of(beside(x))).backward();
  return expect_error<dist::ConsistencyError>(
      [&] { optimizer.step(); }, {"Not averaged: a.weight, a.bias, on rank 0", "trainable since " + to_string(thawed)});
}
const AddRankCase add_thawed_beside("a layer that one rank thaws is reported by the wrapper of its module",
                                    &check_thawed_beside, everywhere({2}));

// The same text on all ranks, from the wrapper that was used. Then training goes on.
std::string check_cut_everywhere(const dist::ProcessGroupPtr& group) {
  const Tensor x = batch_of(group->rank(), 0);
  Cuttable net;
  dist::DistributedDataParallel old(net, group), ddp(net, group);
  loss_of(ddp(x)).backward();
  net->zero_grad();
  net->cut = true;
  std::string wrong = expect_error<dist::ReductionError>(
      [&] { loss_of(ddp(x)).backward(); },
      {"cut the path from the loss", "No gradient: a.weight, a.bias (320 B), on ranks 0", "in backward 2 of"});
  if (!wrong.empty()) return wrong;
  net->cut = false;
  loss_of(ddp(x)).backward();
  return old.reducer().past().rounds == 0 ? "" : "the old wrapper has reduced";
}
const AddRankCase add_cut_everywhere("what all ranks cut off is missing in a module that is wrapped again",
                                     &check_cut_everywhere);

// With static_graph it is enough that one rank reaches less.
std::string check_static_graph(const dist::ProcessGroupPtr& group) {
  Cuttable net;
  const dist::DDPOptions options{.static_graph = true};
  dist::DistributedDataParallel old(net, group, options), ddp(net, group, options);
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  net->zero_grad();
  net->cut = group->rank() == 1;
  return expect_error<dist::ReductionError>([&] { loss_of(ddp(batch_of(group->rank(), 1))).backward(); },
                                            {"used in the first backward", "a.weight, a.bias (320 B), on rank 1"});
}
const AddRankCase add_static_graph("static_graph: a module that is wrapped again uses what it used at first",
                                   &check_static_graph);

// Ranks with different numbers of batches, in a join of the new wrapper alone.
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
    // After the join, steps are checked again.
    optimizer.options().lr = group->rank() == 1 ? 0.2 : 0.1;
    return expect_error<dist::ConsistencyError>([&] { step(10); }, {"lr of group 0 differs"});
  });
}
const AddRankCase add_join("a join of the wrapper that is used: that of the same module rests", &check_join);

}  // namespace brigade::test::wrapped_again_cases
