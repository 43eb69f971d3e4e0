// A layer in train mode on some ranks and in eval mode on others is reported once, before the step.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::layer_modes_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

struct NormNetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  nn::BatchNorm1d norm{nullptr};
  nn::Dropout drop{nullptr};
  NormNetImpl() {
    a = register_module("a", nn::Linear(4, 8));
    norm = register_module("norm", nn::BatchNorm1d(8));
    drop = register_module("drop", nn::Dropout(0.2));
    b = register_module("b", nn::Linear(8, 3));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) { return b(drop(brigade::tanh(norm(a(x))))); }
};
BRIGADE_MODULE(NormNet);

enum class After { Train, Nothing, TrainInStep };

// After step 1 rank 0 evaluates alone.
template <class Module>
std::vector<dist::Verdict> train_with(const dist::ProcessGroupPtr& group, After after, bool all_keep_norm = false) {
  manual_seed(1);
  Module net;
  dist::DistributedDataParallel<Module> ddp(net, group);
  manual_seed(10 + static_cast<uint64_t>(group->rank()));
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int s = 0; s < 5; ++s) {
    if (after == After::TrainInStep) net->train();
    if constexpr (std::is_same_v<Module, NormNet>) {
      if (all_keep_norm && s >= 3) net->norm->eval();
    }
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (s == 1 && group->rank() == 0) {
      const NoGradGuard no_grad;
      net->eval();
      net(batch_of(0, 90));
      if (after == After::Train) net->train();
    }
    optimizer.step();
  }
  return ddp.advisories();
}

// Rank 0 evaluates between the backward and the step, through the wrapper and without NoGradGuard.
std::string check_between(const dist::ProcessGroupPtr& group) {
  manual_seed(1);
  nn::Sequential net(nn::Linear(4, 8), nn::Dropout(0.2), nn::Linear(8, 3));
  net->to(kFloat64);
  dist::DistributedDataParallel<nn::Sequential> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  for (int s = 0; s < 5; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (group->rank() == 0) {
      net->eval();
      ddp(batch_of(0, 90));
      if (s < 3) net->train();
    }
    optimizer.step();
    const size_t expected = s < 4 ? 0 : 1;  // from then on rank 0 has not called train() again
    if (ddp.advisories().size() != expected) return fmt::format("{} verdicts in step {}", ddp.advisories().size(), s);
  }
  return ddp.advisories()[0].kind == "modes_differ" ? "" : ddp.advisories()[0].message;
}
const AddRankCase add_between("an evaluation of one rank between backward and step is not the forward of that step",
                              &check_between, everywhere({2}));

std::string check_forgotten(const dist::ProcessGroupPtr& group) {
  const std::vector<dist::Verdict> said = train_with<NormNet>(group, After::Nothing);
  if (said.size() != 1) return fmt::format("{} verdicts", said.size());
  const dist::Verdict& verdict = said[0];
  const std::vector<int> blamed = group->size() > 2 ? std::vector<int>{0} : std::vector<int>{};
  if (verdict.kind != "modes_differ" || verdict.cause.kind != dist::CauseKind::ModesDiffer || verdict.iteration != 3 ||
      verdict.ranks != blamed || verdict.severity != dist::Severity::Warning)
    return verdict.message;
  return verdict.message.find("Layer `drop` (and 1 more) evaluates on rank 0") != std::string::npos ? ""
                                                                                                    : verdict.message;
}
const AddRankCase add_forgotten("train() forgotten on one rank after its evaluation is reported in the next step",
                                &check_forgotten, everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  for (const After after : {After::Train, After::TrainInStep}) {
    for (const bool all_keep_norm : {false, true}) {
      const std::vector<dist::Verdict> said = train_with<NormNet>(group, after, all_keep_norm);
      if (!said.empty()) return said[0].message;
    }
  }
  // No layer of Net depends on the mode.
  const std::vector<dist::Verdict> said = train_with<Net>(group, After::Nothing);
  return said.empty() ? "" : said[0].message;
}
const AddRankCase add_healthy(
    "evaluations of one rank between forward and step, and layers that all keep in evaluation", &check_healthy,
    everywhere({2}));

}  // namespace brigade::test::layer_modes_cases
