// Advice that a program adds: it is asked after each reduced backward, and its verdicts are kept on all ranks.
#include "rank_case.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>

namespace brigade::test::advice_cases {
// Gives a verdict in the third backward of a network whose layer is called "watched"; throws on rank 0 in the first
// backward of one with "thrown", and returns an error in that of one with "wrong". Silent in all other tests.
class OfTheTest final : public dist::Advice {
 public:
  std::optional<dist::Verdict> examine(dist::FinishedBackward& backward) override {
    ++asked_;
    const std::string layer = dist::module_of(backward.parameters()[0].name);
    const dist::Moment moment = backward.moment();
    if (layer == "thrown" && moment.iteration == 1 && backward.rank() == 0) throw IoError("thrown by an advice");
    if (layer == "wrong" && moment.iteration == 1)
      return dist::verdict_at(moment, "of_the_test", dist::Severity::Error, dist::CauseKind::Unknown);
    if (layer != "watched" || moment.iteration != 3) return std::nullopt;
    const std::string mine =
        fmt::format("rank {} was asked {} times about {} rows", backward.rank(), asked_, backward.rows());
    dist::Verdict verdict = dist::verdict_at(moment, "of_the_test", dist::Severity::Warning, dist::CauseKind::Unknown);
    verdict.message = fmt::format("{}", fmt::join(backward.exchange(mine, "words of the test"), ", "));
    return verdict;
  }

 private:
  int asked_ = 0;
};

const dist::AddAdvice add_of_the_test("of_the_test", [] { return std::make_unique<OfTheTest>(); });

struct NetImpl : nn::Module {
  explicit NetImpl(const std::string& layer) : only(register_module(layer, nn::Linear(3, 2))) {}
  Tensor forward(const Tensor& x) { return only(x); }
  nn::Linear only;
};
BRIGADE_MODULE(Net);

// Four rows, with different numbers on each rank.
void backward(dist::DistributedDataParallel<Net>& ddp, int rank) {
  square(ddp(full({4, 3}, 1.0 + rank))).mean().backward();
}

std::string check_asked(const dist::ProcessGroupPtr& group) {
  Net net("watched");
  dist::DistributedDataParallel<Net> ddp(net, group);
  backward(ddp, group->rank());
  {
    const auto local = ddp.no_sync();
    backward(ddp, group->rank());  // not reduced
  }
  for (int i = 0; i < 3; ++i)
    backward(ddp, group->rank());
  std::string expected;
  for (int rank = 0; rank < group->size(); ++rank)
    expected += fmt::format("{}rank {} was asked 3 times about 4 rows", rank > 0 ? ", " : "", rank);
  std::string found;
  for (const dist::Verdict& verdict : ddp.advisories())
    found += fmt::format("{} in backward {}: {}", verdict.kind, verdict.iteration, verdict.message);
  return found == "of_the_test in backward 3: " + expected ? "" : "advised: '" + found + "'";
}

std::string check_gradients(dist::ProcessGroup& group, const Net& net) {
  const std::string mine = bits_of({net->only->weight.grad(), net->only->bias.grad()});
  for (const std::string& other : group.all_gather_text(mine)) {
    if (other != mine) return "the ranks hold different gradients";
  }
  return "";
}

// After the first backward, which `failing` runs, everything is as after any other: the gradients are reduced, buckets
// are rebuilt on all ranks, and the next backward, a local one, is not taken for a reduced one.
std::string check_failure(const dist::ProcessGroupPtr& group, const char* layer,
                          const std::function<std::string(const std::function<void()>&)>& failing) {
  Net net(layer);
  dist::DistributedDataParallel<Net> ddp(net, group);
  std::string wrong = failing([&] { backward(ddp, group->rank()); });
  if (wrong.empty()) wrong = check_gradients(*group, net);
  if (!wrong.empty()) return wrong;
  {
    const auto local = ddp.no_sync();
    backward(ddp, group->rank());
  }
  if (ddp.reducer().past().rounds != 1) return "a local backward was reduced";
  backward(ddp, group->rank());
  if (ddp.reducer().past().rounds != 2) return "a backward was not reduced";
  return check_gradients(*group, net);
}

const AddRankCase asked("advice of a program's own is asked after each reduced backward, and kept on all ranks",
                        check_asked);
const AddRankCase thrown("what advice throws on one rank leaves backward there, and the gradients are sound",
                         [](const dist::ProcessGroupPtr& group) {
                           return check_failure(group, "thrown", [&](const auto& run) -> std::string {
                             if (group->rank() == 0) return expect_error<IoError>(run, {"thrown by an advice"});
                             run();
                             return "";
                           });
                         });
const AddRankCase wrong("advice that returns an error is refused", [](const dist::ProcessGroupPtr& group) {
  return check_failure(group, "wrong", [](const auto& run) {
    return expect_error<ValueError>(run, {"the advice 'of_the_test' returned a verdict with the severity of an error"});
  });
});

}  // namespace brigade::test::advice_cases
