// A loss without a history on one rank that has two possible causes: frozen parameters, and a detach() that is correct.
// The model is a GAN whose halves have a wrapper each.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/dist/ddp/sync_batch_norm.h>
#include <brigade/dist/groups/threads/run_threads.h>

namespace brigade::test::frozen_roots_cases {

using namespace mechanisms;  // NOLINT: for batch_of and values_of

struct GeneratorNetImpl : nn::Module {
  nn::Linear a{nullptr};
  GeneratorNetImpl() {
    a = register_module("a", nn::Linear(4, 4));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return brigade::tanh(a(x)); }
};
BRIGADE_MODULE(GeneratorNet);

struct JudgeNetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  JudgeNetImpl() {
    a = register_module("a", nn::Linear(4, 4));
    b = register_module("b", nn::Linear(4, 1));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return b(brigade::tanh(a(x))); }
};
BRIGADE_MODULE(JudgeNet);

enum class Mistake { None, FrozenFirst, FrozenLater, NotThawed, Detached };

struct Lines {
  unsigned frozen = 0, detached_by_mistake = 0, frozen_by_design = 0;
};

// Each step trains the judge on detached results, then the generator with a frozen judge. The last rank errs.
Values train_gan(const dist::ProcessGroupPtr& group, int ranks, Mistake mistake, Lines& lines) {
  manual_seed(1);
  GeneratorNet generator;
  JudgeNet judge;
  dist::DistributedDataParallel<GeneratorNet> ddp_generator(generator, group);
  dist::DistributedDataParallel<JudgeNet> ddp_judge(judge, group);
  optim::SGD of_generator(generator->parameters(), 0.1), of_judge(judge->parameters(), 0.1);
  const bool is_odd = group->size() > 1 && group->rank() == group->size() - 1;
  for (int s = 0; s < 3; ++s) {
    const bool now = is_odd && s == (mistake == Mistake::FrozenFirst ? 0 : 1);
    const bool freezes = mistake == Mistake::FrozenFirst || mistake == Mistake::FrozenLater;
    lines.frozen = __LINE__ + 1;
    if (now && freezes) judge->requires_grad_(false);
    of_judge.zero_grad();
    const auto batch = [&](int step) {
      return group->size() == ranks ? batch_of(group->rank(), step) : whole_batch(ranks, step);
    };
    const Tensor fake = ddp_generator(batch(s));
    (mean(square(ddp_judge(batch(s + 50)) - 1.0)) + mean(square(judge(fake.detach())))).backward();
    of_judge.step();
    of_generator.zero_grad();
    of_judge.zero_grad();
    lines.frozen_by_design = __LINE__ + 1;
    judge->requires_grad_(false);
    lines.detached_by_mistake = __LINE__ + 1;
    const Tensor judged = now && mistake == Mistake::Detached ? judge(fake.detach()) : judge(fake);
    mean(square(judged - 1.0)).backward();
    of_generator.step();
    if (!(is_odd && mistake == Mistake::NotThawed)) judge->requires_grad_(true);
  }
  Values values = values_of(generator->parameters());
  for (const double each : values_of(judge->parameters()))
    values.push_back(each);
  return values;
}

// Checks the error of the other ranks when the backward of `rank` was refused. Returns "" or its text.
std::string told_as_failed(const Error& error, int rank) {
  const auto* const reported = dynamic_cast<const dist::ReductionError*>(&error);
  if (!reported) return error.what();
  const dist::Verdict& verdict = reported->verdicts()[0];
  return verdict.kind == "rank_failed" && verdict.ranks == std::vector<int>{rank} ? "" : error.what();
}

std::string check_gan(const dist::ProcessGroupPtr& group, Mistake mistake) {
  const auto place = [](unsigned line) { return to_string(Place("dist/frozen_roots_cases.cpp", line)); };
  const auto frozen_at = [&](unsigned line) {
    return fmt::format(
        "a parameter of module `a` (Linear) that it was computed from is frozen: requires_grad was switched off at {}",
        place(line));
  };
  const int last = group->size() - 1;
  Lines lines;
  try {
    train_gan(group, group->size(), mistake, lines);
  } catch (const Error& error) {
    const std::string text = error.what();
    const std::string expected = mistake == Mistake::NotThawed ? frozen_at(lines.frozen_by_design)
                                 : mistake == Mistake::Detached
                                     ? "cut by detach() at " + place(lines.detached_by_mistake)
                                     : frozen_at(lines.frozen);
    if (text.find(expected) == std::string::npos) return fmt::format("{}, expected {}", text, expected);
    // In the first step either may be the reason.
    const bool both = text.find("another path was cut by detach()") != std::string::npos;
    if (both != (mistake == Mistake::FrozenFirst)) return text;
    return group->rank() == last ? "" : told_as_failed(error, last);
  }
  return "nothing was said";
}

std::string check_mistakes(const dist::ProcessGroupPtr& group) {
  for (const Mistake mistake : {Mistake::FrozenFirst, Mistake::FrozenLater, Mistake::NotThawed, Mistake::Detached}) {
    const std::string wrong = check_gan(group, mistake);
    if (!wrong.empty()) return wrong;
  }
  return "";
}
const AddRankCase add_mistakes(
    "a loss without a history names what was frozen, where a detach() has done no harm before", &check_mistakes,
    everywhere({2, 3}));

// Two critics with a wrapper each in one loss (SAC); the last rank has thawed neither.
std::string check_twins(const dist::ProcessGroupPtr& group) {
  JudgeNet first, second;
  dist::DistributedDataParallel<JudgeNet> ddp_first(first, group), ddp_second(second, group);
  const int last = group->size() - 1;
  const auto train = [&](int step) {
    const Tensor x = batch_of(group->rank(), step);
    const Tensor loss = loss_of(ddp_first(x));  // the wrapper whose forward came last sends first
    (loss + loss_of(ddp_second(x))).backward();
  };
  train(0);
  const SourceLocation frozen = SourceLocation::current();
  if (group->rank() == last) {
    first->requires_grad_(false, frozen);
    second->requires_grad_(false, frozen);
  }
  try {
    train(1);
  } catch (const Error& error) {
    const std::string text = error.what();
    if (text.find("requires_grad was switched off at " + to_string(frozen)) == std::string::npos) return text;
    return group->rank() == last ? "" : told_as_failed(error, last);
  }
  return "nothing was said";
}
const AddRankCase add_twins("a loss of several wrappers without a history on one rank is reported as that",
                            &check_twins, everywhere({2, 3}));

// The other ranks run a collective in their backward before they reduce.
std::string check_exchange(const dist::ProcessGroupPtr& group) {
  nn::Sequential net(nn::Linear(4, 4), dist::SyncBatchNorm(4, group));
  dist::DistributedDataParallel<nn::Sequential> ddp(net, group);
  const int last = group->size() - 1;
  for (int s = 0; s < 2; ++s) {
    const Tensor output = ddp(batch_of(group->rank(), s).to(kFloat32));
    const Tensor loss = loss_of(s == 1 && group->rank() == last ? output.detach() : output);
    try {
      loss.backward();
    } catch (const dist::CollectiveError& error) {
      const std::string text = error.what();
      const bool is_told = text.find(fmt::format("why: the backward of rank {} was refused: its loss has no history",
                                                 last)) != std::string::npos &&
                           text.find(fmt::format("repair the error that rank {} reports", last)) != std::string::npos;
      return is_told && s == 1 && error.verdicts()[0].ranks == std::vector<int>{last} ? "" : text;
    } catch (const Error& error) {
      return s == 1 && group->rank() == last ? "" : error.what();
    }
  }
  return "nothing was said";
}
const AddRankCase add_exchange(
    "a loss without a history is reported where other ranks exchange something in their backward", &check_exchange,
    everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  Lines lines;
  const Values found = train_gan(group, group->size(), Mistake::None, lines);
  Values expected;
  dist::run_threads(1, [&](const dist::ProcessGroupPtr& one) {
    Lines unused;
    expected = train_gan(one, group->size(), Mistake::None, unused);
  });
  return compare(found, expected);
}
const AddRankCase add_healthy("a GAN whose judge is frozen in turns trains as one process does", &check_healthy,
                              everywhere({2}));

}  // namespace brigade::test::frozen_roots_cases
