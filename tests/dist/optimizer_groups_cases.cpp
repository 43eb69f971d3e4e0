// Parameter groups that differ between ranks: which parameters an optimizer holds, and in which group.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::optimizer_groups_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using Group = optim::SGD::Group;
using Groups = std::vector<Group>;

// Trains with these groups. Returns the cause and parameters of the verdict, or "".
std::string train_with(const dist::ProcessGroupPtr& group, const std::function<Groups(Net& net, bool is_last)>& groups,
                       Values* values = nullptr) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(groups(net, group->rank() == group->size() - 1));
  try {
    for (int s = 0; s < 3; ++s) {
      net->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
    }
  } catch (const dist::ConsistencyError& error) {
    if (error.verdicts().size() != 1) return fmt::format("{} verdicts: {}", error.verdicts().size(), error.what());
    const dist::Verdict& verdict = error.verdicts()[0];
    std::string text = fmt::format("{} {}:", verdict.kind, verdict.cause.op);
    for (const dist::ParameterVerdict& parameter : verdict.parameters)
      text += " " + parameter.name;
    return text;
  }
  if (values) *values = values_of(net->parameters());
  return ddp.advisories().empty() ? "" : ddp.advisories()[0].message;
}

std::string expect(const std::string& found, const std::string& expected) {
  return found == expected ? "" : "'" + found + "', expected '" + expected + "'";
}

std::string check_other_groups(const dist::ProcessGroupPtr& group) {
  const std::string found = train_with(group, [](Net& net, bool is_last) {
    const optim::SGDOptions fast{.lr = 0.1}, slow{.lr = 0.01};
    std::vector<Tensor> first = net->a->parameters(), second = net->b->parameters();
    if (is_last) std::swap(first, second);
    return Groups{{first, fast}, {second, slow}, {net->c->parameters(), slow}};
  });
  return expect(found, "optimizers_differ parameter groups: a.bias a.weight b.bias b.weight");
}
const AddRankCase add_other_groups("parameters that are in another group on one rank are named before the first step",
                                   &check_other_groups, everywhere({2, 3}));

std::string check_other_order(const dist::ProcessGroupPtr& group) {
  const std::string found = train_with(group, [](Net& net, bool is_last) {
    Groups groups{{net->a->parameters(), {.lr = 0.1}}, {net->b->parameters(), {.lr = 0.01}}};
    if (is_last) std::swap(groups[0], groups[1]);
    return groups;
  });
  return expect(found, "optimizers_differ order of the parameter groups:");
}
const AddRankCase add_other_order("the same groups in another order are reported as that", &check_other_order,
                                  everywhere({2, 3}));

std::string check_a_group_less(const dist::ProcessGroupPtr& group) {
  const std::string found = train_with(group, [](Net& net, bool is_last) {
    Groups groups{{net->a->parameters(), {.lr = 0.1}}, {net->b->parameters(), {.lr = 0.01}}};
    if (is_last) groups.pop_back();
    return groups;
  });
  return expect(found, "optimizers_differ parameters: b.bias b.weight");
}
const AddRankCase add_a_group_less("a group that one rank has not added is named by its parameters",
                                   &check_a_group_less, everywhere({2, 3}));

// The last rank holds an unwrapped parameter in place of the first one, whose number is 0.
std::string check_another_in_its_place(const dist::ProcessGroupPtr& group) {
  const std::string found = train_with(group, [](Net& net, bool is_last) {
    std::vector<Tensor> parameters = net->parameters();
    if (is_last) {
      parameters[0] = zeros_like(parameters[0]).requires_grad_();
      parameters[0].set_grad(zeros_like(parameters[0]));
    }
    return Groups{{parameters, {.lr = 0.1}}};
  });
  return expect(found, "optimizers_differ parameters: a.weight");
}
const AddRankCase add_another_in_its_place("a parameter in whose place one rank holds another is named",
                                           &check_another_in_its_place, everywhere({2, 3}));

// Two optimizers, each over a part. In the second step the last rank uses the second one in place of the first.
std::string check_other_part(const dist::ProcessGroupPtr& group) {
  for (const bool mistake : {false, true}) {
    for (const bool same_class : {true, false}) {
      manual_seed(1);
      Net net;
      Ddp ddp(net, group);
      std::vector<Tensor> rest = net->b->parameters();
      for (const Tensor& each : net->c->parameters())
        rest.push_back(each);
      optim::SGD first(net->a->parameters(), 0.1), plain(rest, 0.1);
      optim::AdamW adam(rest, {.lr = 0.1});
      optim::Optimizer& second = same_class ? static_cast<optim::Optimizer&>(plain) : adam;
      const bool odd = mistake && group->rank() == group->size() - 1;
      try {
        for (int s = 0; s < 2; ++s) {
          net->zero_grad();
          loss_of(ddp(batch_of(group->rank(), s))).backward();
          (odd && s == 1 ? second : first).step();
          second.step();
        }
        if (mistake) return "nothing was reported";
      } catch (const dist::ConsistencyError& error) {
        if (!mistake || error.verdicts()[0].kind != "optimizers_differ") return error.what();
      }
    }
  }
  return "";
}
const AddRankCase add_other_part("a rank that steps the optimizer of another part of the model is reported",
                                 &check_other_part, everywhere({2, 3}));

// The optimizer of the last rank has another class; the same class made at another line is no difference.
std::string check_other_class(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  for (const bool same : {true, false}) {
    Net net;
    Ddp ddp(net, group);
    optim::SGD sgd(net->parameters(), 0.1);
    std::optional<optim::SGD> other;
    optim::Optimizer* optimizer = &sgd;
    const int last = group->size() - 1;
    const SourceLocation line_before = SourceLocation::current();
    optim::AdamW found(net->parameters(), {.lr = 0.1});
    if (group->rank() == last) {
      other.emplace(net->parameters(), 0.1);
      optimizer = same ? static_cast<optim::Optimizer*>(&*other) : &found;
    }
    try {
      loss_of(ddp(batch_of(group->rank(), 0))).backward();
      optimizer->step();
      if (!same) return "nothing was reported";
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts()[0];
      if (same || verdict.kind != "optimizers_differ" || verdict.cause.op != "optimizer") return error.what();
      const std::string made = fmt::format("rank {} has AdamW, made at {}", last,
                                           to_string(Place(Place(line_before).file, line_before.line() + 1)));
      if (!verdict.cause.text.ends_with(made)) return error.what();
      if (verdict.ranks != (group->size() > 2 ? std::vector<int>{last} : std::vector<int>{})) return error.what();
      // Nothing has moved, and the ranks go on with what they have in common.
      sgd.step();
    }
  }
  return "";
}
const AddRankCase add_other_class(
    "an optimizer of another class is reported by the lines that made the ranks' optimizers", &check_other_class,
    everywhere({2, 3}));

std::string check_order_within_group(const dist::ProcessGroupPtr& group) {
  Values values, expected;
  const std::string found = train_with(
      group,
      [](Net& net, bool is_last) {
        std::vector<Tensor> parameters = net->parameters();
        if (is_last) std::reverse(parameters.begin(), parameters.end());
        return Groups{{parameters, {.lr = 0.1}}};
      },
      &values);
  if (!found.empty()) return found;
  train_with(
      group,
      [](Net& net, bool) {
        return Groups{{net->parameters(), {.lr = 0.1}}};
      },
      &expected);
  return compare(values, expected, 0);
}
const AddRankCase add_order_within_group("the order within a group is a rank's own business", &check_order_within_group,
                                         everywhere({2}));

// Ranks need not agree on whether the host or the device counts the steps.
std::string check_capturable_on_one(const dist::ProcessGroupPtr& group) {
  const auto train = [&](bool is_capturable) {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    optim::AdamW optimizer(net->parameters(), {.lr = 0.1, .capturable = is_capturable});
    for (int s = 0; s < kSteps; ++s) {
      net->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
    }
    return values_of(net->parameters());
  };
  return compare(train(group->rank() == group->size() - 1), train(false), 0);
}
const AddRankCase add_capturable_on_one("an optimizer that is capturable on one rank only moves as the others",
                                        &check_capturable_on_one, everywhere({2, 3}));

// Each rank moves every size-th parameter, with other shapes and counts on each rank, and broadcasts them.
void check_dealt_out(const std::string& backend, int ranks) {
  const Values expected = reference([&](Net& net, optim::Optimizer& optimizer, int s) {
    optimizer.zero_grad();
    loss_of(net(whole_batch(ranks, s))).backward();
    optimizer.step();
  });
  expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
    manual_seed(1);
    Net net;
    Ddp ddp(net, group);
    std::vector<Tensor> own;
    const std::vector<Tensor> all = net->parameters();
    for (size_t i = static_cast<size_t>(group->rank()); i < all.size(); i += static_cast<size_t>(ranks))
      own.push_back(all[i]);
    optim::SGD optimizer(own, {.lr = 0.1, .momentum = 0.9});
    for (int s = 0; s < kSteps; ++s) {
      net->zero_grad();
      loss_of(ddp(batch_of(group->rank(), s))).backward();
      optimizer.step();
      for (size_t i = 0; i < all.size(); ++i)
        group->broadcast(all[i].detach(), {.root = static_cast<int>(i) % ranks})->wait();
    }
    if (!ddp.advisories().empty()) return ddp.advisories()[0].message;
    return compare(values_of(all), expected);
  });
}
const AddRankCase add_dealt_out("parameters that are dealt out by hand, each to one rank, are sound", &check_dealt_out,
                                everywhere({2, 4}));

}  // namespace brigade::test::optimizer_groups_cases
