// What changed since a parameter was last used: when and where that was, and a module whose handle was reassigned.
#include "mechanisms_net.h"
#include "nets.h"
#include "rank_case.h"

namespace brigade::test::since_it_worked_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

using dist::CauseKind;

// Runs `sound` backwards, `change`, and one more backward. Returns its verdict, or nullopt when it is sound.
std::optional<dist::Verdict> verdict_after(const dist::ProcessGroupPtr& group, const PathsImpl::Path& path, int sound,
                                           const std::function<void(Paths&)>& change) {
  manual_seed(1);
  Paths net(path);
  dist::DistributedDataParallel<Paths> ddp(net, group);
  for (int s = 0; s < sound; ++s) {
    net->zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
  }
  net->zero_grad();
  change(net);
  try {
    loss_of(ddp(batch_of(group->rank(), sound))).backward();
  } catch (const dist::ReductionError& error) {
    return error.verdicts().at(0);
  }
  return std::nullopt;
}

std::string check_branch(const dist::ProcessGroupPtr& group) {
  bool skips = false;
  const unsigned line = __LINE__ + 1;
  const auto path = [&](PathsImpl& net, const Tensor& h) { return skips ? h : net.b(h); };
  const auto verdict = verdict_after(group, path, 3, [&](Paths&) { skips = true; });
  if (!verdict) return "nothing was said";
  const std::string expected = fmt::format(
      "used in backwards 1 to 3, not in 4; last taken by linear at dist/since_it_worked_cases.cpp:{}", line);
  if (verdict->cause.kind != CauseKind::ModuleNotCalled) return verdict->message;
  if (verdict->cause.note != expected) return "note: " + verdict->message;
  skips = false;
  return verdict_after(group, path, 3, [](Paths&) {}) ? "a healthy program" : "";
}
const AddRankCase add_branch("a branch that is left out is reported with where it was last taken", &check_branch,
                             everywhere({2}));

// Left out in backwards 3 and 4, where the program goes on after the error, and in 7.
std::string check_ranges(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  bool skips = false;
  Paths net([&](PathsImpl& of, const Tensor& h) { return skips ? h : of.b(h); });
  dist::DistributedDataParallel<Paths> ddp(net, group);
  std::vector<std::string> notes;
  for (int number = 1; number <= 7; ++number) {
    skips = number == 3 || number == 4 || number == 7;
    net->zero_grad();
    try {
      loss_of(ddp(batch_of(group->rank(), number))).backward();
    } catch (const dist::ReductionError& error) {
      notes.push_back(error.verdicts().at(0).cause.note);
    }
  }
  const std::vector<std::string> expected{"used in backwards 1 to 2, not in 3; ",
                                          "used in backwards 1 to 2, not since 3; ",
                                          "used in backwards 1 to 2 and 5 to 6, not in 3 to 4 and 7; "};
  if (notes.size() != expected.size()) return fmt::format("{} errors", notes.size());
  for (size_t i = 0; i < notes.size(); ++i) {
    if (!notes[i].starts_with(expected[i] + "last taken by linear at ")) return notes[i];
  }
  return "";
}
const AddRankCase add_ranges("a layer that comes and goes is reported with the ranges of backwards that used it",
                             &check_ranges, everywhere({2}));

// What is wrong with the verdict of a backward after `net->b = ...`, which follows `sound` sound backwards.
std::string wrong_about_assigned(const dist::ProcessGroupPtr& group, int sound) {
  const unsigned line = __LINE__ + 1;
  const auto path = [](PathsImpl& net, const Tensor& h) { return net.b(h); };
  const auto assign = [](Paths& net) {
    nn::Linear other(8, 8);
    other->to(kFloat64);
    net->b = other;
  };
  const auto verdict = verdict_after(group, path, sound, assign);
  if (!verdict) return "nothing was said";
  if (verdict->cause.kind != CauseKind::Replaced) return verdict->message;
  if (verdict->cause.place.line != line) return "line: " + verdict->message;
  const bool tells =
      verdict->message.find("module `b` was not called; a Linear that is registered nowhere was") != std::string::npos;
  return tells ? "" : verdict->message;
}

std::string check_assigned(const dist::ProcessGroupPtr& group) {
  for (const int sound : {0, 1}) {
    if (const std::string wrong = wrong_about_assigned(group, sound); !wrong.empty()) return wrong;
  }
  // Next to a skipped branch, a helper of another type or a layer that was never registered is not its replacement.
  nn::Linear forgotten(8, 8);
  forgotten->to(kFloat64);
  for (const bool has_tanh : {true, false}) {
    bool skips = false;
    const auto with_helper = [&](PathsImpl& net, const Tensor& h) {
      const Tensor in = skips ? h : net.b(h);
      return has_tanh ? nn::Tanh()(in) : forgotten(in);
    };
    for (const int sound : {0, 1}) {
      skips = false;
      const auto skipped = verdict_after(group, with_helper, sound, [&](Paths&) { skips = true; });
      if (!skipped) return "nothing was said of the branch";
      if (skipped->cause.kind != CauseKind::ModuleNotCalled) return skipped->message;
    }
  }
  return "";
}
const AddRankCase add_assigned("a handle that was assigned again leaves the old module in the tree", &check_assigned,
                               everywhere({2}));

}  // namespace brigade::test::since_it_worked_cases
