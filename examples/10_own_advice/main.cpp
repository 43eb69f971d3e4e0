// Custom advice, which runs at the end of a backward in addition to Brigade's own diagnosis. This advice looks for
// parameters that every rank used and whose gradient is exactly zero on all ranks, as behind a ReLU whose inputs are
// all negative. The training continues; the warning is reported once and kept.
#include <brigade/brigade.h>

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace brigade;

class DeadParameters final : public dist::Advice {
 public:
  // Called on every rank after every reduced backward.
  std::optional<dist::Verdict> examine(dist::FinishedBackward& backward) override {
    // All ranks must exchange in the same backward: here in every tenth one, until a warning was reported.
    const dist::Moment moment = backward.moment();
    if (said_ || moment.iteration % 10 != 0) return std::nullopt;
    std::string mine;  // per parameter: whether this rank has a nonzero gradient
    for (const double sum : backward.sums_of_squares())
      mine += sum == 0 ? '0' : '1';
    const std::vector<std::string> of_ranks = backward.exchange(mine, "gradients that are not zero");

    dist::Verdict verdict =
        dist::verdict_at(moment, "dead_parameters", dist::Severity::Warning, dist::CauseKind::Unknown);
    for (size_t i = 0; i < backward.parameters().size(); ++i) {
      bool is_zero = backward.outcome().users[i] == moment.ranks;
      for (const std::string& of_rank : of_ranks)
        is_zero = is_zero && of_rank[i] == '0';
      if (is_zero) verdict.parameters.push_back(dist::about(backward.parameters()[i], moment.every_rank(), {}));
    }
    if (verdict.parameters.empty()) return std::nullopt;
    said_ = true;
    verdict.ranks = moment.every_rank();
    verdict.message = "the gradient of " + dist::names_in_words(verdict.parameters) + " is zero on every rank";
    verdict.advice = "look at the activation behind it, and at the first values of its bias";
    return verdict;
  }

 private:
  bool said_ = false;
};

// Registered before main, so every wrapper of this program runs it.
const dist::AddAdvice add_dead_parameters("dead_parameters", [] { return std::make_unique<DeadParameters>(); });

struct NetImpl : nn::Module {
  nn::Linear hidden{nullptr}, head{nullptr};
  NetImpl() {
    hidden = register_module("hidden", nn::Linear(2, 4));
    head = register_module("head", nn::Linear(4, 1));
    nn::init::constant_(hidden->bias, -100);  // the mistake: no input is large enough
  }
  Tensor forward(const Tensor& x) { return head(relu(hidden(x))); }
};
BRIGADE_MODULE(Net);

int main() {
  std::vector<std::string> told[2];
  set_warning_handler([](const Warning&) {});  // they are printed below
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    manual_seed(1);
    Net net;
    dist::DistributedDataParallel<Net> ddp(net, group);
    optim::SGD optimizer(net->parameters(), {.lr = 0.01});
    for (int step = 0; step < 30; ++step) {
      const Tensor x = randn({8 + 2 * group->rank(), 2});  // another mistake, which Brigade detects itself
      optimizer.zero_grad();
      mse_loss(ddp(x), x.sum({1}, true)).backward();
      optimizer.step();
    }
    for (const dist::Verdict& verdict : ddp.advisories())
      told[group->rank()].push_back(verdict.kind + " in backward " + std::to_string(verdict.iteration) + ": " +
                                    verdict.message);
  });
  for (const std::string& line : told[0])
    std::printf("%s\n", line.c_str());
  const bool both =
      told[0].size() == 2 && told[0][0].starts_with("uneven_batches in backward 1: ") &&
      told[0][1].starts_with("dead_parameters in backward 10: the gradient of hidden.weight, hidden.bias");
  return both && told[0] == told[1] ? 0 : 1;
}
