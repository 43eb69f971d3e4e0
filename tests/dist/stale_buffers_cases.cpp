// A buffer whose member is reassigned instead of written to is reported two forwards later, and no other buffer is.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::stale_buffers_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

struct ScaledImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d norm{nullptr};
  Tensor scale;
  bool by_name = false;
  std::function<void(ScaledImpl&)> in_forward;
  ScaledImpl() {
    fc = register_module("fc", nn::Linear(4, 3));
    norm = register_module("norm", nn::BatchNorm1d(3));
    scale = register_buffer("scale", ones({1}, kFloat64));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    if (in_forward) in_forward(*this);
    const Tensor features = norm(fc(x));
    if (!by_name) return features * scale;
    for (const auto& [name, buffer] : named_buffers(false)) {
      if (name == "scale") return features * buffer;
    }
    return features;
  }
};
BRIGADE_MODULE(Scaled);

std::vector<dist::Verdict> train_with(const dist::ProcessGroupPtr& group, bool broadcasts,
                                      const std::function<void(ScaledImpl&, int step)>& change,
                                      const std::function<void(ScaledImpl&)>& in_forward = nullptr) {
  manual_seed(1);
  Scaled net;
  net->in_forward = in_forward;
  dist::DistributedDataParallel<Scaled> ddp(net, group, {.broadcast_buffers = broadcasts});
  optim::SGD optimizer(net->parameters(), {.lr = 0.01});
  for (int step = 0; step < 6; ++step) {
    change(*net, step);
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), step))).backward();
    optimizer.step();
  }
  return ddp.advisories();
}

Tensor number(double value) { return full({1}, value, kFloat64); }
void change_nothing(ScaledImpl&, int) {}

std::string check_reported(const dist::ProcessGroupPtr& group) {
  const auto is_right = [&](const std::vector<dist::Verdict>& said) -> std::string {
    if (said.size() != 1) return fmt::format("{} verdicts", said.size());
    const bool right = said[0].kind == "stale_buffer" && said[0].severity == dist::Severity::Warning &&
                       said[0].parameters.at(0).name == "scale" && said[0].ranks == std::vector<int>{group->rank()};
    return right ? "" : said[0].message;
  };
  for (const bool broadcasts : {true, false}) {
    std::string wrong = is_right(train_with(group, broadcasts, [](ScaledImpl& net, int step) {
      if (step == 2) net.scale = number(2);
    }));
    if (!wrong.empty()) return "between two steps: " + wrong;
    wrong = is_right(
        train_with(group, broadcasts, change_nothing, [](ScaledImpl& net) { net.scale = net.scale * 0.9 + 0.1; }));
    if (!wrong.empty()) return "in forward: " + wrong;
  }
  return "";
}
const AddRankCase add_reported("a buffer whose member was assigned again is reported", &check_reported,
                               everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  struct Healthy {
    const char* what;
    std::function<void(ScaledImpl&, int)> change;
    std::function<void(ScaledImpl&)> in_forward = nullptr;
  };
  std::vector<Tensor> kept;
  const Healthy healthy[] = {{"written to", [](ScaledImpl& net, int) { net.scale.copy_(number(2)); }},
                             {"written to in forward", change_nothing,
                              [](ScaledImpl& net) {
                                const NoGradGuard no_grad;
                                net.scale.mul_(0.9);
                              }},
                             {"swapped out and back",
                              [](ScaledImpl& net, int) {
                                const Tensor own = net.scale;
                                net.scale = number(3);
                                net.scale = own;
                              }},
                             {"read by its name",
                              [](ScaledImpl& net, int step) {
                                if (step == 1) net.scale = Tensor();
                                net.by_name = step >= 1;
                              }},
                             {"kept by somebody for a while", [&](ScaledImpl& net, int step) {
                                if (step == 0) kept = net.buffers();
                                if (step == 2) kept.clear();
                              }}};
  for (const Healthy& each : healthy) {
    const auto said = train_with(group, true, each.change, each.in_forward);
    if (!said.empty()) return fmt::format("{}: {}", each.what, said[0].message);
  }
  return "";
}
const AddRankCase add_healthy("buffers that are written to, read by name or kept by others are no matter",
                              &check_healthy, everywhere({2, 3}));

}  // namespace brigade::test::stale_buffers_cases
