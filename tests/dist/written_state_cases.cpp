// Moments that are written by hand through the tensors of state_dict(), which are the optimizer's own memory: if the
// ranks then hold different values, this is reported before the next step with the line, and otherwise not.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::written_state_cases {

using namespace mechanisms;  // NOLINT: the cases are about this network

Tensor moment_of(const optim::OptimizerState& state, const std::string& name) {
  for (const auto& [each, tensor] : state.tensors) {
    if (each == name) return tensor;
  }
  throw ValueError("no moment {}", name);
}

// Four steps. Before the third, `write` gets the optimizer. Errors of a step propagate.
template <class Optimizer, class Options>
void train_and_write(const dist::ProcessGroupPtr& group, const Options& options,
                     const std::function<void(optim::Optimizer&, bool is_last)>& write) {
  manual_seed(1);
  Net net;
  Ddp ddp(net, group);
  Optimizer optimizer(net->parameters(), options);
  for (int s = 0; s < 4; ++s) {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), s))).backward();
    if (s == 2) write(optimizer, group->rank() == group->size() - 1);
    optimizer.step();
  }
}

std::string check_written(const dist::ProcessGroupPtr& group) {
  unsigned line = 0;
  const auto said = [&](auto&& train, const std::string& op) -> std::string {
    try {
      train();
    } catch (const dist::ConsistencyError& error) {
      const dist::Verdict& verdict = error.verdicts().at(0);
      const bool right = error.verdicts().size() == 1 && verdict.kind == "optimizers_differ" &&
                         verdict.cause.kind == dist::CauseKind::ValuesDiffer && verdict.cause.op == op &&
                         verdict.ranks == std::vector<int>{group->size() - 1} && verdict.parameters.size() == 1 &&
                         verdict.parameters[0].name == "a.bias" &&
                         to_string(verdict.cause.place) == to_string(Place("dist/written_state_cases.cpp", line));
      return right ? "" : error.what();
    }
    return "nothing was said";
  };
  std::string wrong = said(
      [&] {
        train_and_write<optim::SGD>(group, optim::SGDOptions{.lr = 0.1, .momentum = 0.9},
                                    [&](optim::Optimizer& optimizer, bool is_last) {
                                      line = __LINE__ + 1;
                                      if (is_last) moment_of(optimizer.state_dict(), "1.momentum_buffer").zero_();
                                    });
      },
      "zero_");
  if (!wrong.empty()) return "SGD: " + wrong;
  wrong = said(
      [&] {
        train_and_write<optim::AdamW>(
            group, optim::AdamWOptions{.lr = 0.1}, [&](optim::Optimizer& optimizer, bool is_last) {
              line = __LINE__ + 1;
              if (is_last) moment_of(optimizer.state_dict(), "1.exp_avg").mul_(0.5);
              if (is_last)
                moment_of(optimizer.state_dict(), "2.exp_avg_sq").mul_(1);  // what is handed out again is not forgotten
            });
      },
      "mul_");
  return wrong.empty() ? "" : "AdamW: " + wrong;
}
const AddRankCase add_written("moments that one rank has written to are found before the next step", &check_written,
                              everywhere({2, 3}));

std::string check_sound(const dist::ProcessGroupPtr& group) {
  using Write = std::function<void(optim::Optimizer&, bool is_last)>;
  const std::pair<const char*, Write> writes[] = {
      {"all ranks",
       [](optim::Optimizer& optimizer, bool) { moment_of(optimizer.state_dict(), "1.exp_avg").mul_(0.5); }},
      {"a copy",
       [](optim::Optimizer& optimizer, bool is_last) {
         if (is_last) moment_of(optimizer.state_dict(), "1.exp_avg").clone().mul_(0.5);
       }},
      {"and back",
       [](optim::Optimizer& optimizer, bool is_last) {
         const Tensor moment = moment_of(optimizer.state_dict(), "1.exp_avg");
         const Tensor before = moment.clone();
         if (is_last) moment.zero_();
         if (is_last) moment.copy_(before);
       }},
      {"then all load",
       [](optim::Optimizer& optimizer, bool is_last) {
         optim::OptimizerState saved = optimizer.state_dict();
         for (auto& [name, tensor] : saved.tensors)
           tensor = tensor.clone();
         if (is_last) moment_of(optimizer.state_dict(), "1.exp_avg").zero_();
         optimizer.load_state_dict(saved);
       }},
      {"of a state that is its own no more", [](optim::Optimizer& optimizer, bool is_last) {
         const optim::OptimizerState before = optimizer.state_dict();
         optimizer.load_state_dict(before);
         if (is_last) moment_of(before, "1.exp_avg").zero_();
       }}};
  for (const auto& [what, write] : writes) {
    try {
      train_and_write<optim::Adam>(group, optim::AdamOptions{.lr = 0.1}, write);
    } catch (const dist::ConsistencyError& error) {
      return fmt::format("{}: {}", what, error.what());
    }
  }
  return "";
}
const AddRankCase add_sound("moments that are the same on all ranks after a write are no matter", &check_sound,
                            everywhere({2, 3}));

}  // namespace brigade::test::written_state_cases
