// Backwards of other models on one rank, between the wrapper's forward and its backward, and losses that look like
// them.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/autograd/backward.h>

namespace brigade::test::foreign_backwards_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// What one rank does with the output.
using Interlude = std::function<void(Ddp&, const Tensor& output)>;

void train_probe(Ddp&, const Tensor& output) {
  nn::Linear probe(3, 1);
  probe->to(kFloat64);
  optim::SGD optimizer(probe->parameters(), {.lr = 0.1});
  mean(square(probe(output.detach()))).backward();
  optimizer.step();
}

void train_other_model(Ddp&, const Tensor&) {
  Net other;
  optim::SGD optimizer(other->parameters(), {.lr = 0.1});
  loss_of(other(batch_of(0, 0))).backward();
  optim::clip_grad_norm_(other->parameters(), 0.1);
  optimizer.step();
}

void evaluate(Ddp& ddp, const Tensor&) { loss_of(ddp(batch_of(3, 3))).item<double>(); }

void evaluate_and_probe(Ddp& ddp, const Tensor& output) {
  evaluate(ddp, output);
  train_probe(ddp, ddp(batch_of(3, 4)));
}

// The gradient of an input, through a model whose weights are frozen.
void attack_frozen_model(Ddp&, const Tensor&) {
  Net other;
  for (const Tensor& parameter : other->parameters())
    parameter.requires_grad_(false);
  const Tensor x = batch_of(1, 1).requires_grad_();
  loss_of(other(x)).backward();
}

void fail_in_other_model(Ddp&, const Tensor& output) {
  try {
    nn::Linear probe(3, 1);
    probe->to(kFloat64);
    const Tensor result = probe(output.detach());
    result.register_hook([](const Tensor&) -> Tensor { throw ValueError("no luck"); });
    mean(result).backward();
  } catch (const ValueError&) {
  }
}

// Trains with an interlude before or after the backward on the last rank.
std::string train_with(const dist::ProcessGroupPtr& group, const Interlude& interlude, bool before) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int s = 0; s < kSteps; ++s) {
    optimizer.zero_grad();
    const Tensor output = ddp(batch_of(group->rank(), s));
    const bool plays = group->rank() == group->size() - 1 && s % 2 == 1;
    if (plays && before) interlude(ddp, output);
    loss_of(output).backward();
    if (plays && !before) interlude(ddp, output);
    optim::clip_grad_norm_(net->parameters(), 1e9);
    optimizer.step();
  }
  if (!ddp.advisories().empty()) return ddp.advisories().front().message;
  return compare(values_of(net->parameters()), plain_reference(group->size()));
}

void check_sound(const std::string& backend, int ranks) {
  const std::pair<const char*, Interlude> interludes[] = {{"probe", train_probe},
                                                          {"other model", train_other_model},
                                                          {"evaluation with gradients", evaluate},
                                                          {"evaluation and probe", evaluate_and_probe},
                                                          {"frozen model", attack_frozen_model},
                                                          {"failure elsewhere", fail_in_other_model}};
  for (const auto& [name, interlude] : interludes) {
    for (const bool before : {true, false}) {
      CAPTURE(name);
      CAPTURE(before);
      expect_well(backend, ranks,
                  [&](const dist::ProcessGroupPtr& group) { return train_with(group, interlude, before); });
    }
  }
}
const AddRankCase add_sound("backwards of other models on one rank change nothing", &check_sound, everywhere({2, 3}));

// The loss of the last rank reaches another model only.
void constant_loss(Ddp& ddp, const dist::ProcessGroupPtr& group, nn::Linear& other) {
  const Tensor output = ddp(batch_of(group->rank(), 0));
  if (group->rank() < group->size() - 1) {
    loss_of(output).backward();
  } else {
    mean(square(other(output.detach()))).backward();
  }
}

std::string check_found(const dist::ProcessGroupPtr& group) {
  const bool last = group->rank() == group->size() - 1;
  for (const bool clips : {false, true}) {
    manual_seed(1);
    Net net;
    nn::Linear other(3, 1);
    other->to(kFloat64);
    Ddp ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    optim::SGD for_other(other->parameters(), {.lr = 0.1});
    const std::string wrong = expect_error<dist::ReductionError>(
        [&] {
          constant_loss(ddp, group, other);
          if (last) for_other.step();
          if (clips) optim::clip_grad_norm_(net->parameters(), 1.0);
          optimizer.step();
        },
        {fmt::format(", on rank {}, in backward", group->size() - 1), "why: detach() at ",
         "cut the path from the loss"});
    if (!wrong.empty()) return wrong;
    // Training goes on with the same wrapper.
    loss_of(ddp(batch_of(group->rank(), 1))).backward();
    optimizer.step();
  }
  return "";
}
const AddRankCase add_found("a loss that reaches another model only is found when the gradients are wanted",
                            &check_found, everywhere({2, 3}));

std::string check_taken_part(const dist::ProcessGroupPtr& group) {
  const int ranks = group->size();
  for (const bool clips : {false, true}) {
    manual_seed(1);
    Net net;
    nn::Linear other(3, 1);
    other->to(kFloat64);
    Ddp ddp(net, group, {.find_unused_parameters = true});
    optim::SGD optimizer(net->parameters(), {.lr = 0.1});
    constant_loss(ddp, group, other);
    const double norm = clips ? optim::clip_grad_norm_(net->parameters(), 0.01) : 0;
    optimizer.step();

    manual_seed(1);
    Net alone;
    optim::SGD plain(alone->parameters(), {.lr = 0.1});
    for (int r = 0; r + 1 < ranks; ++r)
      (loss_of(alone(batch_of(r, 0))) / static_cast<double>(ranks)).backward();
    if (clips && std::abs(norm - optim::clip_grad_norm_(alone->parameters(), 0.01)) > 1e-9)
      return fmt::format("the norm is {}", norm);
    plain.step();
    const std::string wrong = compare(values_of(net->parameters()), values_of(alone->parameters()));
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_taken_part("where parameters may be unused, a rank whose loss reaches another model adds zeros",
                                 &check_taken_part, everywhere({2, 3}));

}  // namespace brigade::test::foreign_backwards_cases
