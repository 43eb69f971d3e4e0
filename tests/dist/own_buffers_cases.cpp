// Buffers with broadcast_buffers off: a buffer that one rank alone replaces outside of forward is reported before the
// next step, and buffers that differ by design are not.
#include "mechanisms_net.h"
#include "rank_case.h"

namespace brigade::test::own_buffers_cases {

using namespace mechanisms;  // NOLINT: loss_of and batch_of

// forward() computes with `scale`; `log` is read nowhere; the batch norm has statistics of its own.
struct ScaledImpl : nn::Module {
  nn::Linear fc{nullptr};
  nn::BatchNorm1d norm{nullptr};
  Tensor scale, log;
  std::function<void(ScaledImpl&)> in_forward;
  ScaledImpl() {
    fc = register_module("fc", nn::Linear(4, 3));
    norm = register_module("norm", nn::BatchNorm1d(3));
    scale = register_buffer("scale", ones({1}, kFloat64));
    log = register_buffer("log", zeros({1}, kFloat64));
    to(kFloat64);
  }
  Tensor forward(const Tensor& x) {
    if (in_forward) in_forward(*this);
    return norm(fc(x)) * scale;
  }
};
BRIGADE_MODULE(Scaled);

struct Training {
  explicit Training(const dist::ProcessGroupPtr& process_group, dist::DDPOptions options = {.broadcast_buffers = false})
      : group(process_group), ddp(net, group, options), optimizer(net->parameters(), {.lr = 0.01}) {}
  void step() {
    optimizer.zero_grad();
    loss_of(ddp(batch_of(group->rank(), number++))).backward();
    optimizer.step();
  }
  // Calls `write` before each step except the first.
  std::vector<dist::Verdict> run(const std::function<void(Training&)>& write) {
    step();
    for (int s = 0; s < 3; ++s) {
      write(*this);
      step();
    }
    return ddp.advisories();
  }
  int rank() const { return group->rank(); }
  bool is_last() const { return rank() == group->size() - 1; }

  dist::ProcessGroupPtr group;
  Scaled net;
  dist::DistributedDataParallel<Scaled> ddp;
  optim::SGD optimizer;
  int number = 0;
};

Tensor number(double value) { return full({1}, value, kFloat64); }

// Checks that the only verdict is about `scale` on rank `last`, written by `op` at `line`.
std::string check_reported(const std::vector<dist::Verdict>& said, const char* op, unsigned line, int last) {
  if (said.size() != 1) return fmt::format("{} verdicts", said.size());
  const dist::Verdict& verdict = said[0];
  if (verdict.kind != "buffers_written" || verdict.severity != dist::Severity::Warning) return verdict.message;
  if (verdict.ranks != std::vector<int>{last} || verdict.parameters.at(0).name != "scale") return verdict.message;
  const Place expected("dist/own_buffers_cases.cpp", line);
  return verdict.cause.op == op && to_string(verdict.cause.place) == to_string(expected) ? "" : verdict.message;
}

std::string check_replaced(const dist::ProcessGroupPtr& group) {
  const int last = group->size() - 1;
  const unsigned copied = __LINE__ + 2;
  std::string wrong = check_reported(Training(group).run([](Training& of) {
    if (of.is_last()) of.net->scale.copy_(number(2));
  }),
                                     "copy_", copied, last);
  if (!wrong.empty()) return "copy_: " + wrong;
  const unsigned loaded = __LINE__ + 2;
  wrong = check_reported(Training(group).run([](Training& of) {
    if (of.is_last()) of.net->load_state_dict({{"scale", number(2)}}, false);
  }),
                         "load_state_dict", loaded, last);
  return wrong.empty() ? "" : "load_state_dict: " + wrong;
}
const AddRankCase add_replaced(
    "a buffer that one rank alone replaces is reported with the line, where ranks keep their own", &check_replaced,
    everywhere({2, 3}));

std::string check_healthy(const dist::ProcessGroupPtr& group) {
  const std::pair<const char*, std::function<void(Training&)>> writes[] = {
      {"all write the same", [](Training& of) { of.net->scale.copy_(number(2)); }},
      {"each writes its own", [](Training& of) { of.net->scale.copy_(number(1 + of.rank())); }},
      {"one writes what all hold",
       [](Training& of) {
         if (of.is_last()) of.net->scale.copy_(number(1));
       }},
      {"one loads its own state",
       [](Training& of) {
         if (of.is_last()) of.net->load_state_dict(of.net->state_dict());
       }},
      {"one swaps in, and back",
       [](Training& of) {
         if (!of.is_last()) return;
         of.net->scale.copy_(number(3));
         of.net->scale.copy_(number(1));
       }},
      {"one counts",
       [](Training& of) {
         if (of.is_last()) of.net->log.add_(number(1));
       }},
      {"one adds a number",
       [](Training& of) {
         if (of.is_last()) of.net->scale.add_(0.5);
       }},
      {"one divides by a number",
       [](Training& of) {
         if (of.is_last()) of.net->scale.div_(2.0);
       }},
      {"one keeps a log that forward does not read",
       [](Training& of) {
         if (of.is_last()) of.net->log.copy_(number(of.number));
       }},
      {"a moving average in place",
       [](Training& of) {
         of.net->scale.mul_(0.9);
         of.net->scale.add_(number(0.1 * (1 + of.rank())));
       }},
      {"one resets its statistics after a bad batch", [](Training& of) {
         if (of.is_last()) of.net->norm->running_mean.copy_(zeros({3}, kFloat64));
       }}};
  for (const auto& [what, write] : writes) {
    const auto said = Training(group).run(write);
    if (!said.empty()) return fmt::format("{}: {}", what, said[0].message);
  }
  return "";
}
const AddRankCase add_healthy("buffers that differ by design are no matter where ranks keep their own", &check_healthy,
                              everywhere({2, 3}));

std::string check_elsewhere(const dist::ProcessGroupPtr& group) {
  // A buffer that forward() itself fills, on the rank whose batches need it.
  Training banked(group);
  banked.net->in_forward = [&](ScaledImpl& net) {
    if (banked.is_last()) net.scale.copy_(number(1 + banked.number));
  };
  if (const auto said = banked.run([](Training&) {}); !said.empty()) return "in forward: " + said[0].message;
  const auto replaces = [](Training& of) {
    if (of.is_last()) of.net->scale.copy_(number(2));
  };
  if (const auto said = Training(group, {}).run(replaces); !said.empty()) return "broadcast: " + said[0].message;
  Training ignored(group, {.broadcast_buffers = false, .parameters_and_buffers_to_ignore = {"scale"}});
  const auto said = ignored.run(replaces);
  return said.empty() ? "" : "ignored: " + said[0].message;
}
const AddRankCase add_elsewhere(
    "a buffer that forward writes, that is broadcast or that is ignored may be one rank's own", &check_elsewhere,
    everywhere({2, 3}));

// Every rank's forward updates a buffer by its own batch, and computes with it or not.
std::string check_drift(const dist::ProcessGroupPtr& group) {
  const auto mean_of = [](Training& of) { return batch_of(of.rank(), of.number).mean().reshape({1}) + 2.0; };
  const auto run = [&](const std::function<void(Training&)>& update, dist::DDPOptions options) {
    Training of(group, options);
    of.net->in_forward = [&](ScaledImpl&) { update(of); };
    return of.run([](Training&) {});
  };
  const dist::DDPOptions own = {.broadcast_buffers = false};
  const unsigned line = __LINE__ + 3;
  const auto drifts = [&](Training& of) {
    const NoGradGuard no_grad;
    of.net->scale.mul_(0.9).add_(mean_of(of), 0.1);
  };
  const auto said = run(drifts, own);
  if (said.size() != 1) return fmt::format("{} verdicts", said.size());
  const dist::Verdict& verdict = said[0];
  if (verdict.kind != "buffers_differ" || verdict.severity != dist::Severity::Warning || verdict.cause.op != "add_" ||
      to_string(verdict.cause.place) != to_string(Place("dist/own_buffers_cases.cpp", line)) ||
      verdict.iteration != 2 || verdict.parameters.size() != 1 || verdict.parameters[0].name != "scale" ||
      verdict.message.find("wrote each rank's own values") == verdict.message.npos)
    return verdict.message;
  if (const auto other = run(drifts, {}); !other.empty()) return "broadcast: " + other[0].message;
  const std::pair<const char*, std::function<void(Training&)>> healthy[] = {
      {"averaged",
       [&](Training& of) {
         const NoGradGuard no_grad;
         const Tensor mean = mean_of(of);
         group->all_reduce(mean, {.op = dist::ReduceOp::Avg, .description = "means"})->wait();
         of.net->scale.mul_(0.9).add_(mean, 0.1);
       }},
      {"only recorded",
       [&](Training& of) {
         const NoGradGuard no_grad;
         of.net->log.copy_(of.net->log * 0.9 + mean_of(of) * 0.1);
       }},
      {"once", [&](Training& of) {
         const NoGradGuard no_grad;
         if (of.number == 1) of.net->scale.copy_(mean_of(of));
       }}};
  for (const auto& [what, update] : healthy) {
    if (const auto other = run(update, own); !other.empty()) return fmt::format("{}: {}", what, other[0].message);
  }
  return "";
}
const AddRankCase add_drift("a buffer that each rank's forward updates and trains on is reported in the second step",
                            &check_drift, everywhere({2, 3}));

// Mean and variance of the batch norm differ from the first step on.
std::string check_told_once(const dist::ProcessGroupPtr& group) {
  Training apart(group, {.broadcast_buffers = false, .verify_every = 1});
  const auto said = apart.run([](Training&) {});
  if (said.size() != 1) return fmt::format("{} verdicts", said.size());
  const dist::Verdict& verdict = said[0];
  if (verdict.kind != "buffers_differ" || verdict.severity != dist::Severity::Warning) return verdict.message;
  if (verdict.parameters.size() != 2 || verdict.parameters[0].name != "norm.running_mean" ||
      verdict.parameters[1].name != "norm.running_var")
    return verdict.message;
  return verdict.message.find("Buffers differ between the ranks: norm.running_mean is not the same on") == 0 &&
                 verdict.message.find("(1 more differ") != verdict.message.npos
             ? ""
             : verdict.message;
}
const AddRankCase add_told_once("verify_every tells of buffers that differ once, with the number of them",
                                &check_told_once, everywhere({2, 3}));

}  // namespace brigade::test::own_buffers_cases
