// A verdict points at the user's own line, never at a line inside the library or at one that ended long before.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

#include <chrono>
#include <optional>

namespace brigade::test::own_lines_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using dist::CauseKind;

constexpr const char* kThisFile = "dist/own_lines_cases.cpp";

// Takes one sound step over all parameters, then a step over the parameters that `change` returns.
std::string points_at(const dist::ProcessGroupPtr& group, CauseKind kind,
                      const std::function<std::pair<std::vector<Tensor>, unsigned>(Net&)>& change) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD sound(net->parameters(), {.lr = 0.1});
  loss_of(ddp(batch_of(group->rank(), 0))).backward();
  sound.step();
  sound.zero_grad();
  const auto [parameters, line] = change(net);
  optim::SGD optimizer(parameters, {.lr = 0.1});
  Tensor loss = loss_of(ddp(batch_of(group->rank(), 1)));
  for (const Tensor& parameter : parameters)
    loss = loss + parameter.sum().to(kFloat64);
  loss.backward();
  try {
    optimizer.step();
  } catch (const dist::ConsistencyError& error) {
    const dist::Verdict& verdict = error.verdicts().at(0);
    if (verdict.cause.kind != kind) return fmt::format("{}: {}", name(verdict.cause.kind), error.what());
    const auto at = Place(kThisFile, line);
    return to_string(verdict.cause.place) == to_string(at) ? "" : to_string(at) + " was expected: " + error.what();
  }
  return "nothing was said";
}

std::vector<Tensor> joined(std::vector<Tensor> all, const std::vector<Tensor>& more) {
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

std::string check_lines(const dist::ProcessGroupPtr& group) {
  const auto adds = [](Net& net) {
    net->register_module("extra", nn::Linear(2, 2));
    return std::pair(net->parameters(), unsigned{__LINE__ - 1});
  };
  const auto replaces = [](Net& net) {
    net->b->replace_parameter("weight", zeros({8, 8}, kFloat64).requires_grad_());
    return std::pair(net->parameters(), unsigned{__LINE__ - 1});
  };
  const auto leaves_behind = [](Net& net) {
    net->b = nn::Linear({.in_features = 8, .out_features = 8, .dtype = kFloat64});
    return std::pair(joined(net->parameters(), net->b->parameters()), unsigned{__LINE__ - 1});
  };
  // Layers that the library makes inside a layer.
  const auto makes_nested = [](Net& net) {
    const nn::MultiheadAttention attention(8, 2);
    return std::pair(joined(net->parameters(), attention->parameters()), unsigned{__LINE__ - 1});
  };
  const std::pair<const char*, std::string> found[] = {
      {"added", points_at(group, CauseKind::Added, adds)},
      {"replaced", points_at(group, CauseKind::Replaced, replaces)},
      {"left behind", points_at(group, CauseKind::OutsideWrapper, leaves_behind)},
      {"nested", points_at(group, CauseKind::OutsideWrapper, makes_nested)},
  };
  for (const auto& [which, wrong] : found) {
    if (!wrong.empty()) return fmt::format("{}: {}", which, wrong);
  }
  return "";
}
const AddRankCase add_lines("parameters of the library's layers belong to the line that made the layer", &check_lines,
                            everywhere({2}));

// A guard in a std::optional is constructed in a standard header: the line is that of the first operation under it.
std::string check_emplaced_guard(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  unsigned line = 0;
  Paths net([&](PathsImpl& of, const Tensor& h) {
    std::optional<NoGradGuard> guard;
    guard.emplace();
    line = __LINE__ + 1;
    const Tensor cut = of.b(h);
    guard.reset();
    return cut + h;
  });
  dist::DistributedDataParallel<Paths> ddp(net, group);
  try {
    loss_of(ddp(batch_of(group->rank(), 0))).backward();
  } catch (const dist::ReductionError& error) {
    const dist::Cause& cause = error.verdicts().at(0).cause;
    const std::string at = to_string(Place(kThisFile, line));
    if (cause.kind != CauseKind::NoGrad || to_string(cause.place) != at) return error.what();
    const std::string text = "used under no_grad, by linear at " + at + " in `b` (Linear)";
    return cause.text == text ? "" : cause.text;
  }
  return "nothing was said";
}
const AddRankCase add_emplaced_guard("a no_grad guard that std::optional makes is reported by what runs under it",
                                     &check_emplaced_guard, everywhere({2}));

// After two steps the last rank stays in its data loader for longer than the time-out of the group.
void check_time_out(const std::string& backend, int ranks) {
  for (const bool says_so : {false, true}) {
    CAPTURE(says_so);
    const SharedCount gave_up;
    const std::vector<Rank> outcome = run_ranks(
        backend, ranks,
        [&](dist::ProcessGroupPtr group) -> std::string {
          Net net;
          Ddp ddp(net, group);
          optim::SGD optimizer(net->parameters(), {.lr = 0.1});
          const unsigned step_line = __LINE__ + 4;
          for (int s = 0; s < 2; ++s) {
            optimizer.zero_grad();
            loss_of(ddp(batch_of(group->rank(), s))).backward();
            optimizer.step();
          }
          if (group->rank() == ranks - 1) {
            std::optional<dist::Activity> loading;
            if (says_so) loading.emplace(*group, "loading data");
            return gave_up.wait_for(ranks - 1) ? "" : "nobody gave up";
          }
          const SharedCount::AddAtEnd adds{gave_up};
          try {
            loss_of(ddp(batch_of(group->rank(), 2))).backward();
          } catch (const dist::DiagnosedAs<TimeoutError>& error) {
            const dist::Cause& cause = error.verdicts().at(0).cause;
            if (says_so) return cause.text.find("s in loading data at ") != std::string::npos ? "" : cause.text;
            if (cause.place) return "a line: " + cause.text;
            const std::string words =
                fmt::format("s in its own code, after a step of SGD at {}:{}", kThisFile, step_line);
            return cause.text.find(words) != std::string::npos ? "" : words + " is missing in: " + cause.text;
          } catch (const std::exception& error) {
            return std::string("another error: ") + error.what();
          }
          return "nothing was said";
        },
        std::chrono::milliseconds(1500));
    expect_all_well(outcome);
  }
}
const AddRankCase add_time_out("a step that has ended is not what a late rank is doing", &check_time_out,
                               everywhere({2}));

}  // namespace brigade::test::own_lines_cases
