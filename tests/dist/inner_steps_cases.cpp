// First-order MAML: steps on each rank's own gradients are taken if the program can take them back, and its next step on
// averages moves weights that are the same on every rank.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <optional>

namespace brigade::test::inner_steps_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

enum class How {
  Sound,
  ByStateDict,  // copies of state_dict(), put back by load_state_dict()
  TwoTasks,     // two reduced backwards, each with inner steps, before the outer step
  NotPutBack,   // the outer step moves the adapted weights
  PartlyPutBack,
  ByOneRank,     // the last rank puts back something else
  NoCopies,      // nothing to put back
  NoOuter,       // no other optimizer holds these weights
  OuterLocal,    // the outer backward is under no_sync, too
  Accumulation,  // no outer step: the plain mistake, beside an optimizer and copies for the log
};

void adapt(Net& net, optim::Optimizer& inner, const std::function<Tensor(int)>& forward, int task,
           SourceLocation where = SourceLocation::current()) {
  for (int k = 0; k < 2; ++k) {
    inner.zero_grad();
    loss_of(forward(10 * task + k)).backward({}, where);
    optim::clip_grad_norm_(net->parameters(), 0.5);
    inner.step(where);
  }
}

std::vector<Tensor> copies_of(Net& net) {
  std::vector<Tensor> copies;
  for (const Tensor& parameter : net->parameters())
    copies.push_back(parameter.detach().clone());
  return copies;
}

void put_back(Net& net, const std::vector<Tensor>& copies, size_t count) {
  const NoGradGuard no_grad;
  const std::vector<Tensor> parameters = net->parameters();
  for (size_t i = 0; i < count; ++i)
    parameters[i].copy_(copies[i]);
}

constexpr int kOuterSteps = 3;

// `at`: the line of the inner steps, then of the outer one.
Values train(const dist::ProcessGroupPtr& group, How how, Net& net, SourceLocation (&at)[2]) {
  Ddp ddp(net, group);
  std::optional<optim::SGD> outer;
  if (how != How::NoOuter) outer.emplace(net->parameters(), optim::SGDOptions{.lr = 0.1, .momentum = 0.9});
  optim::SGD inner(net->parameters(), {.lr = 0.05});
  const auto forward = [&](int step) { return ddp(batch_of(group->rank(), step)); };
  for (int it = 0; it < kOuterSteps; ++it) {
    std::vector<Tensor> copies = how == How::NoCopies ? std::vector<Tensor>{} : copies_of(net);
    nn::Named<Tensor> state;
    if (how == How::ByStateDict)
      for (const auto& [name, tensor] : net->state_dict())
        state.emplace_back(name, tensor.clone());
    for (int task = 0; task < (how == How::TwoTasks ? 2 : 1); ++task) {
      if (task > 0) put_back(net, copies, copies.size());
      if (how == How::Accumulation) loss_of(forward(9)).backward();
      {
        const auto local = ddp.no_sync();
        adapt(net, inner, forward, it, at[0] = SourceLocation::current());
        if (how == How::Accumulation) continue;
        inner.zero_grad();
        if (how == How::OuterLocal) loss_of(forward(10 * it + 5)).backward();
      }
      if (how != How::OuterLocal) loss_of(forward(10 * it + 5)).backward();
    }
    if (how == How::ByStateDict) net->load_state_dict(state);
    if (how == How::ByOneRank && group->rank() == group->size() - 1) copies[2].mul_(1.5);
    if (how != How::NotPutBack && how != How::ByStateDict && how != How::Accumulation)
      put_back(net, copies, how == How::PartlyPutBack ? 4 : copies.size());
    at[1] = SourceLocation::current();
    if (how != How::Accumulation) outer->step(at[1]);
  }
  return ddp.advisories().empty() ? values_of(net->parameters()) : Values{};
}

Values maml_in_one_process(int ranks) {
  manual_seed(1);
  Net net;
  optim::SGD outer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
  for (int it = 0; it < kOuterSteps; ++it) {
    const std::vector<Tensor> copies = copies_of(net);
    std::vector<Tensor> sums;
    for (int rank = 0; rank < ranks; ++rank) {
      optim::SGD inner(net->parameters(), {.lr = 0.05});
      const auto forward = [&](int step) { return net(batch_of(rank, step)); };
      adapt(net, inner, forward, it);
      inner.zero_grad();
      loss_of(forward(10 * it + 5)).backward();
      for (size_t i = 0; i < copies.size(); ++i) {
        const Tensor mean_part = net->parameters()[i].grad() / ranks;
        if (rank == 0) sums.push_back(mean_part);
        if (rank > 0) sums[i].add_(mean_part);
      }
      put_back(net, copies, copies.size());
    }
    for (size_t i = 0; i < copies.size(); ++i)
      net->parameters()[i].set_grad(sums[i]);
    outer.step();
  }
  return values_of(net->parameters());
}

std::string check_sound(const dist::ProcessGroupPtr& group) {
  const Values expected = maml_in_one_process(group->size());
  for (const How how : {How::Sound, How::ByStateDict, How::TwoTasks}) {
    manual_seed(1);
    Net net;
    SourceLocation at[2];
    const Values moved = train(group, how, net, at);
    const std::string wrong =
        how == How::TwoTasks && moved.size() == expected.size() ? "" : compare(moved, expected, 1e-9);
    if (!wrong.empty()) return fmt::format("case {}: {}", static_cast<int>(how), wrong);
  }
  return "";
}
const AddRankCase add_sound("the inner steps of first-order MAML are taken, and its outer step is the mean's",
                            &check_sound, everywhere({2, 3}));

struct Found {
  How how;
  const char* kind;
  size_t parameters;  // 0: those whose values show it
  int at;             // the line that is named, if not -1
  bool is_untouched;  // no weight has moved at all
};

std::string check_found(const dist::ProcessGroupPtr& group) {
  const Found rows[] = {
      {How::NotPutBack, "unreduced_gradients", 0, 0, false}, {How::PartlyPutBack, "unreduced_gradients", 0, 0, false},
      {How::NoCopies, "unreduced_gradients", 6, -1, true},   {How::NoOuter, "unreduced_gradients", 6, -1, true},
      {How::OuterLocal, "unreduced_gradients", 6, -1, true}, {How::Accumulation, "unreduced_gradients", 0, 0, false},
      {How::ByOneRank, "parameters_written", 1, -1, false}};
  for (const Found& row : rows) {
    manual_seed(1);
    Net net;
    const Values before = values_of(net->parameters());
    SourceLocation at[2];
    std::string wrong = "nothing was said";
    try {
      train(group, row.how, net, at);
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      const bool is_right = error.verdicts().size() == 1 && verdict.kind == row.kind &&
                            (row.parameters == 0 || verdict.parameters.size() == row.parameters) &&
                            (row.at < 0 || verdict.cause.place == Place(at[row.at])) &&
                            (compare(values_of(net->parameters()), before).empty() || !row.is_untouched);
      wrong = is_right ? "" : error.what();
    }
    if (!wrong.empty()) return fmt::format("case {}: {}", static_cast<int>(row.how), wrong);
  }
  return "";
}
const AddRankCase add_found("steps on own gradients that are not taken back are found before the next weight moves",
                            &check_found, everywhere({2, 3}));

}  // namespace brigade::test::inner_steps_cases
