// Gradient hooks that zero one rank's gradient: reported with the line of the hook after three backwards, but not where
// the gradient was zero by itself or is zero on all ranks.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::emptied_gradients_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

using Hook = std::function<Tensor(const Tensor& gradient, int rank, int step)>;

// Four steps with a hook on one weight. The loss of the last rank is multiplied by `weight_of_last`.
std::vector<dist::Verdict> train_with(const dist::ProcessGroupPtr& group, const Hook& hook, unsigned* line = nullptr,
                                      double weight_of_last = 1) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  int step = 0;
  if (line) *line = __LINE__ + 1;
  net->b->weight.register_hook([&](const Tensor& gradient) { return hook(gradient, group->rank(), step); });
  const bool is_last = group->rank() == group->size() - 1;
  for (; step < 4; ++step) {
    optimizer.zero_grad();
    const Tensor weight = full({}, is_last ? weight_of_last : 1.0, kFloat64);
    (loss_of(ddp(batch_of(group->rank(), step))) * weight).backward();
    optimizer.step();
  }
  return ddp.advisories();
}

std::string check_emptied(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const Hook hooks[] = {[&](const Tensor& gradient, int rank, int) { return rank == last ? gradient * 0.0 : gradient; },
                        [&](const Tensor& gradient, int rank, int) {
                          if (rank == last) gradient.zero_();
                          return Tensor();
                        }};
  for (const Hook& hook : hooks) {
    unsigned line = 0;
    const std::vector<dist::Verdict> said = train_with(group, hook, &line);
    if (group->rank() != last) {
      if (!said.empty()) return "a rank whose gradients are there says: " + said[0].message;
      continue;
    }
    if (said.size() != 1) return fmt::format("{} verdicts", said.size());
    const dist::Verdict& verdict = said[0];
    const Place expected("dist/emptied_gradients_cases.cpp", line);
    if (verdict.kind != "gradient_outlier" || verdict.cause.kind != dist::CauseKind::HookDiffers ||
        verdict.iteration != 3 || verdict.ranks != std::vector<int>{last} ||
        verdict.parameters.at(0).name != "b.weight" || to_string(verdict.cause.place) != to_string(expected))
      return verdict.message;
  }
  return "";
}
const AddRankCase add_emptied("a hook that leaves nothing of one rank's gradient is reported in the third backward",
                              &check_emptied, everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  struct Healthy {
    const char* what;
    Hook hook;
    double weight_of_last = 1;
  };
  const Healthy healthy[] = {
      {"all ranks freeze it", [](const Tensor& gradient, int, int) { return gradient * 0.0; }},
      {"two backwards of four", [&](const Tensor& gradient, int rank,
                                    int step) { return rank == last && step % 2 == 0 ? gradient * 0.0 : gradient; }},
      {"small, not zero: its square is",
       [&](const Tensor& gradient, int rank, int) { return rank == last ? gradient * 1e-200 : gradient; }},
      {"zero by itself", [](const Tensor& gradient, int, int) { return gradient * 0.5; }, 0.0},
      {"a log", [](const Tensor& gradient, int, int) {
         static_cast<void>(gradient.to_vector<double>());
         return Tensor();
       }}};
  for (const Healthy& each : healthy) {
    const auto said = train_with(group, each.hook, nullptr, each.weight_of_last);
    if (!said.empty()) return fmt::format("{}: {}", each.what, said[0].message);
  }
  return "";
}
const AddRankCase add_healthy("hooks that freeze on all ranks, or now and then, are no matter", &check_healthy,
                              everywhere({2, 3}));

}  // namespace brigade::test::emptied_gradients_cases
