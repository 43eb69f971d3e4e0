// Steps with gradients that were cleared after their backward, and loops that clear gradients at other places.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <algorithm>

namespace brigade::test::idle_steps_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using dist::Verdict;

// Where a loop clears the gradients.
struct Clearing {
  bool before_backward = false, before_step = false, after_step = false;
  bool set_to_none = true;
};

// The warnings of idle steps in three iterations, and the line that clears before the step.
struct Found {
  std::vector<Verdict> idle;
  unsigned cleared_at = 0;
};

Found train_with(const dist::ProcessGroupPtr& group, const Clearing& clears) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  Found found;
  for (int s = 0; s < 3; ++s) {
    if (clears.before_backward) optimizer.zero_grad(clears.set_to_none);
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    found.cleared_at = __LINE__ + 1;
    if (clears.before_step) optimizer.zero_grad(clears.set_to_none);
    optimizer.step();
    if (clears.after_step) net->zero_grad(clears.set_to_none);
  }
  std::ranges::copy_if(ddp.advisories(), std::back_inserter(found.idle),
                       [](const Verdict& verdict) { return verdict.kind == "idle_step"; });
  return found;
}

std::string check_cleared(const dist::ProcessGroupPtr& group) {
  for (const bool set_to_none : {true, false}) {
    const Found found = train_with(group, {.before_step = true, .set_to_none = set_to_none});
    if (found.idle.size() != 1) return fmt::format("{} warnings, set_to_none {}", found.idle.size(), set_to_none);
    const Verdict& verdict = found.idle.front();
    if (verdict.cause.kind != dist::CauseKind::NoBackward) return verdict.message;
    if (verdict.message.find("uses nothing of the latest backward.\nwhy: its gradients were cleared") ==
        std::string::npos)
      return verdict.message;
    // Zeroed gradients do not record the line that cleared them.
    if (set_to_none && verdict.cause.place.line != found.cleared_at) return "line: " + verdict.message;
  }
  return "";
}
const AddRankCase add_cleared("gradients that are cleared between backward and step are reported, with the line",
                              &check_cleared, everywhere({2}));

std::string check_right_places(const dist::ProcessGroupPtr& group) {
  for (const bool set_to_none : {true, false}) {
    for (const bool after : {true, false}) {
      const Found found =
          train_with(group, {.before_backward = !after, .after_step = after, .set_to_none = set_to_none});
      if (!found.idle.empty()) return found.idle.front().message;
    }
  }
  return "";
}
const AddRankCase add_right_places("gradients may be cleared before backward, or after the step", &check_right_places,
                                   everywhere({2}));

// A generator and a discriminator in one wrapper, each with an optimizer that clears before its own backward: it clears
// gradients of the other's backward, but no step is idle.
std::string check_turns(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group, {.find_unused_parameters = true});
  optim::SGD first(net->a->parameters(), {.lr = 0.1});
  optim::SGD rest({net->b->weight, net->b->bias, net->c->weight, net->c->bias}, {.lr = 0.1});
  for (int s = 0; s < 3; ++s) {
    for (optim::SGD* const optimizer : {&first, &rest}) {
      optimizer->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer->step();
    }
  }
  for (const Verdict& verdict : ddp.advisories()) {
    if (verdict.kind == "idle_step") return verdict.message;
  }
  return "";
}
const AddRankCase add_turns("two optimizers that take turns are not idle", &check_turns, everywhere({2}));

// The optimizer holds another network of the same shape, while the wrapped one gets the gradients and is moved by hand
// or not at all. Returns the kinds of the verdicts.
std::string told_beside(const dist::ProcessGroupPtr& group, bool by_hand) {
  manual_seed(1);
  Net net, other;
  Ddp ddp(net, group);
  optim::SGD optimizer(other->parameters(), {.lr = 0.01});
  for (int s = 0; s < 40; ++s) {
    net->zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    optimizer.step();
    const NoGradGuard no_grad;
    for (const Tensor& parameter : net->parameters()) {
      if (by_hand) parameter.add_(parameter.grad(), -0.01);
    }
  }
  std::string told;
  for (const Verdict& verdict : ddp.advisories())
    told += fmt::format("{} of {};", verdict.kind, verdict.parameters.size());
  return told;
}

std::string check_other_network(const dist::ProcessGroupPtr& group) {
  const std::string held_by_none = told_beside(group, false), by_hand = told_beside(group, true);
  if (held_by_none != "unheld_parameters of 6;") return "held by none: " + held_by_none;
  return by_hand.empty() ? "" : "by hand: " + by_hand;
}
const AddRankCase add_other_network("an optimizer that holds another network than the wrapped one is reported",
                                    &check_other_network, everywhere({2}));

}  // namespace brigade::test::idle_steps_cases
