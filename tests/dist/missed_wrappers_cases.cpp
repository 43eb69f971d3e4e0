// A rank that does not reduce a wrapper as the others do, because its forward ran under no_grad or its backward reaches
// nothing of it: all ranks report which wrapper and where. Mismatches with other causes are not reported so.
#include "mechanisms_net.h"
#include "rank_case.h"

#include <optional>

namespace brigade::test::missed_wrappers_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

// A generator and a discriminator, each in a wrapper and with an optimizer of its own.
struct Pair {
  explicit Pair(const dist::ProcessGroupPtr& process_group)
      : group(process_group),
        g(net_g, group),
        d(net_d, group),
        for_g(net_g->parameters(), {.lr = 0.1}),
        for_d(net_d->parameters(), {.lr = 0.1}) {}
  bool is_last() const { return group->rank() == group->size() - 1; }
  Tensor judged(const Tensor& fake, const Tensor& x) { return loss_of(d(cat({fake, x.narrow(1, 0, 1)}, 1))); }
  void clear() {
    for_g.zero_grad();
    for_d.zero_grad();
  }
  void step() {
    for_g.step();
    for_d.step();
  }

  dist::ProcessGroupPtr group;
  Net net_g, net_d;
  Ddp g, d;
  optim::SGD for_g, for_d;
};

// Runs `train` with a pair once for each faulty step, in which the last rank does something else.
void expect_mismatch(const std::string& backend, int ranks, const std::vector<int>& faulty_steps,
                     const std::function<void(Pair&, int faulty_step)>& train, const std::vector<std::string>& parts,
                     const std::vector<std::string>& not_said = {}) {
  for (const int faulty_step : faulty_steps) {
    CAPTURE(faulty_step);
    expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) -> std::string {
      Pair pair(group);
      try {
        train(pair, faulty_step);
      } catch (const dist::CollectiveError& error) {
        const std::string text = with_whole_places(error.what());
        for (const std::string& part : parts) {
          if (text.find(part) == std::string::npos) return "'" + part + "' is missing in: " + text;
        }
        for (const std::string& part : not_said) {
          if (text.find(part) != std::string::npos) return "'" + part + "' is in: " + text;
        }
        return "";
      }
      return "nothing was said";
    });
  }
}

void check_no_grad(const std::string& backend, int ranks) {
  const SourceLocation forward = SourceLocation::current();
  const std::string rank = fmt::format("rank {}", ranks - 1);
  for (const bool in_one_loss : {true, false}) {
    CAPTURE(in_one_loss);
    const auto train = [&](Pair& pair, int faulty_step) {
      for (int s = 0; s < 4; ++s) {
        const Tensor x = batch_of(pair.group->rank(), s);
        pair.clear();
        std::optional<NoGradGuard> guard;
        if (s == faulty_step && pair.is_last()) guard.emplace(SourceLocation::current());
        const Tensor fake = pair.g(x, forward);
        guard.reset();
        if (in_one_loss) {
          pair.judged(fake, x).backward();
        } else {
          if (fake.requires_grad()) loss_of(fake).backward();
          loss_of(pair.d(x)).backward();
        }
        pair.step();
      }
    };
    expect_mismatch(backend, ranks, {0, 2}, train,
                    {fmt::format("the forward of DDP(Net) at {} ran under no_grad from dist/missed_wrappers_cases.cpp:",
                                 to_string(forward)),
                     " on " + rank + " and not on rank 0", "under the NoGradGuard on every rank or on none"},
                    {"left out"});
  }
}
const AddRankCase add_no_grad(
    "a forward that one rank alone runs under no_grad is reported where its backward is missing", &check_no_grad,
    everywhere({2, 3}));

// Once the buckets are rebuilt, this is reported at the end of the backward with the line of the detach().
void check_cut(const std::string& backend, int ranks) {
  const SourceLocation backward = SourceLocation::current();
  const auto train = [&](Pair& pair, int faulty_step) {
    for (int s = 0; s < 4; ++s) {
      const Tensor x = batch_of(pair.group->rank(), s);
      pair.clear();
      const Tensor fake = pair.g(x);
      pair.judged(s == faulty_step && pair.is_last() ? fake.detach() : fake, x).backward(backward);
      pair.step();
    }
  };
  expect_mismatch(backend, ranks, {0}, train,
                  {fmt::format("the backward at {} reaches nothing of DDP(Net) on rank {}, and does on rank 0",
                               to_string(backward), ranks - 1),
                   "look for a detach()"});
}
const AddRankCase add_cut("a first backward that reaches nothing of a wrapper on one rank alone is reported as that",
                          &check_cut, everywhere({2, 3}));

// The discriminator's steps run the generator under no_grad, or detach it, on every rank.
void check_other_reason(const std::string& backend, int ranks) {
  for (const bool no_grad : {true, false}) {
    CAPTURE(no_grad);
    const auto train = [&](Pair& pair, int faulty_step) {
      for (int s = 0; s < 4; ++s) {
        const Tensor x = batch_of(pair.group->rank(), s);
        const int steps = s == faulty_step && pair.is_last() ? 2 : 1;
        for (int k = 0; k < steps; ++k) {
          Tensor fake;
          {
            std::optional<NoGradGuard> guard;
            if (no_grad) guard.emplace(SourceLocation::current());
            fake = pair.g(x);
          }
          pair.clear();
          pair.judged(fake.detach(), x).backward();
          pair.for_d.step();
        }
        pair.clear();
        pair.judged(pair.g(x), x).backward();
        pair.for_g.step();
      }
    };
    expect_mismatch(backend, ranks, {0, 2}, train, {}, {"ran under no_grad", "reaches nothing", "never calls"});
  }
}
const AddRankCase add_other_reason("a discriminator's step more on one rank is blamed on no forward and no backward",
                                   &check_other_reason, everywhere({2, 3}));

// The critic's forward is recorded for its own steps and under no_grad for the actor's, on one line; one rank skips a
// step of the critic.
void check_shared_line(const std::string& backend, int ranks) {
  const auto train = [](Pair& pair, int faulty_step) {
    const auto value = [&](const Tensor& x) { return pair.d(x); };
    for (int s = 0; s < 4; ++s) {
      const Tensor x = batch_of(pair.group->rank(), s);
      for (int k = s == faulty_step && pair.is_last() ? 1 : 0; k < 2; ++k) {
        pair.clear();
        loss_of(value(x)).backward();
        pair.for_d.step();
      }
      Tensor values;
      {
        const NoGradGuard no_grad;
        values = value(x);
      }
      pair.clear();
      mean(pair.g(x) * values).backward();
      pair.for_g.step();
    }
  };
  expect_mismatch(backend, ranks, {2}, train, {}, {"ran under no_grad"});
}
const AddRankCase add_shared_line("a forward that every step runs both ways at one line is not to blame",
                                  &check_shared_line, everywhere({2, 3}));

// One rank alone does not declare that its backward reaches only a part of the module.
std::string check_expected(const dist::ProcessGroupPtr& group) {
  Net net;
  Ddp ddp(net, group);
  const std::string last = fmt::format("rank {}", group->size() - 1);
  std::optional<Ddp::Expected> expected;
  if (group->rank() != group->size() - 1) expected.emplace(ddp.expect(net->c->parameters()));
  return expect_error<dist::CollectiveError>(
      [&] {
        loss_of(net->c(ones({2, 8}, kFloat64))).backward();
      },
      {"the backward of DDP(Net) is wrong by what " + last + " expects of it, and right by what rank 0 does",
       "expect()"});
}
const AddRankCase add_expected("a backward that one rank alone expects to reach everything is reported as that",
                               &check_expected, {.threads = {2, 3}, .shm = {2, 3}, .others = {}});

}  // namespace brigade::test::missed_wrappers_cases
