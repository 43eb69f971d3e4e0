// Gradients accumulated under no_sync are reduced by the next synced backward, whatever that backward reaches.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/autograd/function.h>
#include <brigade/dist/ddp/join.h>

#include <optional>

namespace brigade::test::accumulation_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// Runs a backward of a loss that depends on no parameter of a wrapper.
void backward_of_something_else() {
  const Tensor other = ones({3}, kFloat64);
  other.requires_grad_();
  sum(square(other)).backward();
}

// One micro-batch under no_sync, then a synced one whose loss reaches the parameters on the ranks from `reaching` on.
void step_of(Ddp& ddp, optim::Optimizer& optimizer, int rank, int step, int reaching) {
  optimizer.zero_grad();
  {
    const auto local = ddp.no_sync();
    loss_of(ddp(batch_of(rank, step))).backward();
  }
  const Tensor second = loss_of(ddp(batch_of(rank, step + 50)));
  if (rank >= reaching) {
    second.backward();
  } else {
    backward_of_something_else();
  }
  optimizer.step();
}

// The sum of the losses of `rank` in `step`, as step_of() makes them.
Tensor summed_loss(Net& one, int rank, int step, int reaching) {
  const Tensor first = loss_of(one(batch_of(rank, step)));
  return rank >= reaching ? first + loss_of(one(batch_of(rank, step + 50))) : first;
}

void check_gathered_is_reduced(const std::string& backend, int ranks) {
  for (const int reaching : {ranks, 1}) {
    const Values expected = reference([&](Net& net, optim::Optimizer& optimizer, int s) {
      optimizer.zero_grad();
      Tensor loss = summed_loss(net, 0, s, reaching);
      for (int r = 1; r < ranks; ++r)
        loss = loss + summed_loss(net, r, s, reaching);
      (loss / static_cast<double>(ranks)).backward();
      optimizer.step();
    });
    for (const bool views : {true, false}) {
      CAPTURE(reaching);
      CAPTURE(views);
      expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
        manual_seed(1);
        Net net;
        Ddp ddp(net, group, {.gradient_as_bucket_view = views, .bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
        optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
        for (int s = 0; s < kSteps; ++s)
          step_of(ddp, optimizer, group->rank(), s, reaching);
        return compare(values_of(net->parameters()), expected);
      });
    }
  }
}
const AddRankCase add_gathered_is_reduced(
    "a synced micro-batch that reaches nothing reduces what has gathered under no_sync", &check_gathered_is_reduced,
    everywhere({2, 3}));

void check_gathered_in_join(const std::string& backend, int ranks) {
  // Rank r has 1 + r steps; their synced micro-batches reach no parameter.
  manual_seed(1);
  Net one;
  optim::SGD plain(one->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < ranks; ++s) {
    plain.zero_grad();
    for (int r = s; r < ranks; ++r)
      (summed_loss(one, r, s, ranks) / static_cast<double>(ranks)).backward();
    plain.step();
  }
  const Values expected = values_of(one->parameters());
  expect_well(backend, ranks, [&](dist::ProcessGroupPtr group) -> std::string {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group, {.bucket_cap_mb = 1e-4, .first_bucket_mb = 1e-4});
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    dist::Join join(ddp);
    for (int s = 0; s <= group->rank(); ++s)
      step_of(ddp, optimizer, group->rank(), s, ranks);
    join.finish();
    return compare(values_of(net->parameters()), expected);
  });
}
const AddRankCase add_gathered_in_join("join: a synced micro-batch that reaches nothing reduces what has gathered",
                                       &check_gathered_in_join, everywhere({2, 3}));

// A backward of something else reduces nothing, whether or not the wrapper has accumulated gradients.
std::string check_another_backward(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group);
  const auto collectives = [&] { return ddp.reducer().past().collectives; };
  {
    const auto local = ddp.no_sync();
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
  }
  backward_of_something_else();
  if (collectives() != 0) return "a backward without a forward of the wrapper reduced";
  net->zero_grad();
  ddp(batch_of(group->rank(), 1));
  backward_of_something_else();
  if (collectives() != 0) return "a backward that goes through nothing of the forward reduced";
  optim::SGD(net->parameters(), {.lr = 0.1}).step();
  return collectives() == 1 ? "" : fmt::format("{} collectives for gradients that were cleared", collectives());
}
const AddRankCase add_another_backward(
    "gradients that gather wait for a backward through a synced forward, or for the step", &check_another_backward,
    everywhere({2}));

// One rank, or all, clear the gradients of a micro-batch, local or averaged, before the next reduced backward.
std::string check_cleared(const dist::ProcessGroupPtr& group, bool averaged) {
  for (const bool to_none : {true, false}) {
    for (const bool on_all : {false, true}) {
      Net net;
      Ddp ddp(net, group);
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      for (int s = 0; s < 2; ++s) {
        optimizer.zero_grad();
        {
          std::optional<Ddp::NoSync> local;
          if (!averaged) local.emplace(ddp.no_sync());
          loss_of(ddp(batch_of(group->rank(), s))).backward();
        }
        if (on_all || group->rank() == 0) optimizer.zero_grad(to_none);
        loss_of(ddp(batch_of(group->rank(), 10 + s))).backward();
        optimizer.step();
      }
      const size_t expected = on_all ? 0 : 1;
      if (ddp.advisories().size() != expected)
        return fmt::format("{} verdicts, expected {}", ddp.advisories().size(), expected);
      if (on_all) continue;
      const dist::Verdict& verdict = ddp.advisories()[0];
      if (verdict.kind != "uneven_micro_batches" || verdict.iteration != (averaged ? 2 : 1) ||
          verdict.ranks != std::vector<int>{0})
        return verdict.message;
      // An averaged micro-batch counts in full: some ranks kept it by mistake, or the others cleared it by mistake.
      const bool kept = verdict.message.find("2 (1 averaged before, the latest at line ") != std::string::npos;
      const bool to_clear =
          verdict.advice.find("zero_grad() between those backwards on every rank") != std::string::npos;
      if (kept != averaged || to_clear != averaged) return verdict.message + verdict.advice;
    }
  }
  return "";
}
std::string check_cleared_micro_batch(const dist::ProcessGroupPtr& group) {
  const std::string wrong = check_cleared(group, false);
  return wrong.empty() ? check_cleared(group, true) : wrong;
}
const AddRankCase add_cleared_micro_batch(
    "a micro-batch that one rank clears is missing in its gradients, and told; one that all clear is not",
    &check_cleared_micro_batch, everywhere({3}));

// Accumulated gradients are clipped before they are reduced, on each rank by its own norm.
std::string check_clipped_early(const dist::ProcessGroupPtr& group) {
  for (const bool views : {true, false}) {
    for (const bool early : {true, false}) {
      Net net;
      Ddp ddp(net, group, {.gradient_as_bucket_view = views});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1});
      unsigned line = 0;
      for (int s = 0; s < 2; ++s) {
        optimizer.zero_grad();
        {
          const auto local = ddp.no_sync();
          loss_of(ddp(batch_of(group->rank(), s))).backward();
        }
        line = __LINE__ + 1;
        if (early) optim::clip_grad_norm_(net->parameters(), 0.01);
        loss_of(ddp(batch_of(group->rank(), 10 + s))).backward();
        if (!early) optim::clip_grad_norm_(net->parameters(), 0.01);
        optimizer.step();
      }
      if (ddp.advisories().size() != (early ? 1 : 0))
        return fmt::format("views {}, early {}: {} verdicts", views, early, ddp.advisories().size());
      if (!early) continue;
      const dist::Verdict& verdict = ddp.advisories()[0];
      if (verdict.kind != "edited_before_reduction" || verdict.cause.place.line != line || verdict.iteration != 1)
        return verdict.message;
    }
  }
  return "";
}
const AddRankCase add_clipped_early(
    "gradients that are clipped before they are reduced are reported, in the bucket or in memory of their own",
    &check_clipped_early, everywhere({2}));

struct GivesNothing : autograd::Function<GivesNothing> {
  static Tensor forward(autograd::AutogradContext&, const Tensor& x) { return x * 2.0; }
  static std::vector<Tensor> backward(autograd::AutogradContext&, const std::vector<Tensor>&) { return {Tensor()}; }
};

// A layer accumulates a gradient that is then cleared, a weight is written, and the next backward delivers no gradient
// along the path in the plan.
std::string check_cleared_and_cut(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group);
  {
    const auto local = ddp.no_sync();
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
  }
  net->zero_grad();
  {
    const NoGradGuard no_grad;
    net->c->bias.mul_(1.5);
  }
  static_cast<void>(ddp(batch_of(group->rank(), 1)));
  const Tensor features = GivesNothing::apply(brigade::tanh(net->a(batch_of(group->rank(), 1))));
  loss_of(net->c(brigade::tanh(net->b(features)))).backward();
  return ddp.advisories().empty() ? "" : ddp.advisories()[0].message;
}
const AddRankCase add_cleared_and_cut("a layer that has gathered, was cleared, and gets no gradient ends no run",
                                      &check_cleared_and_cut, everywhere({2}));

// An accumulation that resumes from the gradients of a checkpoint, which differ between ranks.
std::string check_resumed(const dist::ProcessGroupPtr& group, bool synced) {
  const auto first_of = [](Net& net, int rank) {
    std::vector<Tensor> gradients;
    loss_of(net(batch_of(rank, 0))).backward();
    for (const Tensor& parameter : net->parameters())
      gradients.push_back(parameter.grad().clone());
    net->zero_grad();
    return gradients;
  };
  manual_seed(1);
  Net net;
  const std::vector<Tensor> kept = first_of(net, group->rank());
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (size_t i = 0; i < kept.size(); ++i)
    net->parameters()[i].set_grad(kept[i]);
  for (int m = 1; m < 3; ++m) {
    std::optional<Ddp::NoSync> local;
    if (m < 2 || !synced) local.emplace(ddp.no_sync());
    loss_of(ddp(batch_of(group->rank(), m))).backward();
  }
  try {
    optimizer.step();
  } catch (const dist::ConsistencyError& error) {
    const std::string text = error.what();
    if (synced || error.verdicts()[0].kind != "unreduced_gradients") return text;
    return text.find("0 of 2 micro-batches were reduced: the last backward, at ") == std::string::npos ? text : "";
  }
  if (!synced) return "nothing was said";
  manual_seed(1);
  Net one;
  optim::SGD plain(one->parameters(), {.lr = 0.1});
  for (int r = 0; r < group->size(); ++r) {
    for (int m = 0; m < 3; ++m)
      (loss_of(one(batch_of(r, m))) / static_cast<double>(group->size())).backward();
  }
  plain.step();
  return compare(values_of(net->parameters()), values_of(one->parameters()));
}
std::string check_resumed_accumulation(const dist::ProcessGroupPtr& group) {
  const std::string wrong = check_resumed(group, true);
  return wrong.empty() ? check_resumed(group, false) : wrong;
}
const AddRankCase add_resumed_accumulation(
    "an accumulation that goes on from gradients that were set is reduced; one that ends under no_sync is reported as that",
    &check_resumed_accumulation, everywhere({2, 3}));

}  // namespace brigade::test::accumulation_cases
