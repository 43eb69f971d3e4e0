// Training that is saved and resumed in fresh wrappers: with every hook, the same bits as without the break.
#include "core/temporary_folder.h"
#include "mechanisms_net.h"
#include "rank_case.h"

#include <brigade/core/view.h>
#include <brigade/dist/ddp/model_averaging.h>

#include <limits>

namespace brigade::test::hook_resume_cases {

using namespace mechanisms;  // NOLINT: the batches and the loss

// Its layers are used in another order than they are registered in, so that the buckets are rebuilt.
struct MixedImpl : nn::Module {
  nn::Linear last{nullptr}, first{nullptr}, middle{nullptr};
  MixedImpl() {
    last = register_module("last", nn::Linear(8, 3));
    first = register_module("first", nn::Linear(4, 8));
    middle = register_module("middle", nn::Linear(8, 8));
  }
  Tensor forward(const Tensor& x) { return last(brigade::tanh(middle(brigade::tanh(first(x.to(kFloat32)))))); }
};
BRIGADE_MODULE(Mixed);

using MakeHook = std::function<dist::CommHookPtr()>;

// Everything that a program trains with; a fresh instance stands for a restarted program.
struct Program {
  Mixed net;
  dist::DistributedDataParallel<Mixed> ddp;
  dist::CommHookPtr hook;
  optim::AdamW optimizer;
  dist::PeriodicModelAverager averager;
  int64_t step = 0;
  int64_t averagings = 0;

  Program(const dist::ProcessGroupPtr& group, const MakeHook& make)
      : ddp(net, group, {.bucket_cap_mb = 2e-4, .first_bucket_mb = 1e-4, .check_steps = false}),
        hook(make()),
        optimizer(net->parameters(), {.lr = 0.01}),
        averager(group, 2, 1) {
    ddp.register_comm_hook(hook);
  }

  void train_until(int64_t end, int rank) {
    for (; step < end; ++step) {
      optimizer.zero_grad();
      loss_of(ddp(batch_of(rank, static_cast<int>(step)))).backward();
      optimizer.step();
      averager.average_parameters(net);
    }
    averagings = static_cast<int64_t>(averager.step());
  }

  optim::Checkpoint checkpoint() {
    optim::Checkpoint parts;
    parts.module("net", *net).optimizer("adam", optimizer).number("step", step).number("averager", averagings);
    parts.part(
        "hook",
        [this] {
          return optim::OptimizerState{hook->name(), hook->state_dict(), {}};
        },
        [this](const optim::OptimizerState& state) { hook->load_state_dict(state.tensors); });
    return parts;
  }
};

constexpr int64_t kEnd = 8;

std::string resumes(const dist::ProcessGroupPtr& group, const MakeHook& make) {
  const TemporaryFolder folder;
  const std::string path = folder / "rank.safetensors";
  manual_seed(3);
  Program whole(group, make);
  whole.train_until(kEnd, group->rank());
  const std::string expected = bits_of(whole.net->parameters());
  for (const int64_t at : {1, 2, 3, 4, 6}) {
    {
      manual_seed(3);
      Program before(group, make);
      before.train_until(at, group->rank());
      before.checkpoint().save(path);
    }
    manual_seed(99);
    Program after(group, make);
    const auto layout = after.ddp.reducer().buckets().layouts();
    after.checkpoint().load(path);
    after.averager.set_step(static_cast<uint64_t>(after.averagings));
    after.train_until(kEnd, group->rank());
    const bool local = after.hook->name() == "post_local_sgd";  // sends nothing: buckets are not rebuilt
    if (!local && after.ddp.reducer().buckets().layouts() == layout) return "the buckets were not rebuilt";
    if (bits_of(after.net->parameters()) != expected) return fmt::format("other bits when saved after step {}", at);
  }
  return "";
}

void check_resume(const std::string& backend, int ranks) {
  const std::vector<std::pair<std::string, MakeHook>> hooks{
      {"allreduce", [] { return dist::allreduce_hook(); }},
      {"bf16_compress", [] { return dist::bf16_compress_hook(); }},
      {"powersgd", [] { return dist::powersgd_hook({.min_compression_rate = 1}); }},
      {"powersgd of rank 2, from step 3 on",
       [] {
         return dist::powersgd_hook(
             {.matrix_approximation_rank = 2, .start_powersgd_iter = 3, .min_compression_rate = 0.5});
       }},
      {"powersgd without a warm start",
       [] { return dist::powersgd_hook({.min_compression_rate = 1, .warm_start = false, .seed = 5}); }},
      {"powersgd without error feedback",
       [] { return dist::powersgd_hook({.min_compression_rate = 1, .use_error_feedback = false}); }},
      {"post_local_sgd", [] { return dist::post_local_sgd_hook(4); }},
  };
  for (const auto& [name, make] : hooks) {
    CAPTURE(name);
    expect_well(backend, ranks, [&](const dist::ProcessGroupPtr& group) { return resumes(group, make); });
  }
}
const AddRankCase add_resume("a hook resumes bit for bit, over a rebuild of the buckets", &check_resume,
                             {.threads = {2, 3}, .shm = {2, 3}, .others = {2, 3}});

// Counts as PyTorch does: the first N backwards are plain.
std::string check_start(const dist::ProcessGroupPtr& group) {
  constexpr int64_t kStart = 3;
  std::string powersgd, local;
  Program compressed(group, [] { return dist::powersgd_hook({.start_powersgd_iter = kStart}); });
  Program averaged(group, [] { return dist::post_local_sgd_hook(kStart); });
  for (int64_t step = 1; step <= 6; ++step) {
    for (Program* each : {&compressed, &averaged}) {
      const uint64_t sent = each->ddp.reducer().past().collectives;
      each->train_until(step, group->rank());
      if (each == &averaged) local += each->ddp.reducer().past().collectives > sent ? '1' : '0';
    }
    powersgd += compressed.hook->state_dict().size() > 1 ? '0' : '1';
  }
  if (powersgd != "111000") return "powersgd: plain backwards " + powersgd;
  if (local != "111000") return "post_local_sgd: global backwards " + local;
  // Without error feedback and warm start, PowerSGD may begin at once.
  dist::powersgd_hook({.start_powersgd_iter = 0, .use_error_feedback = false, .warm_start = false});
  for (const double rate : {-1.0, 0.0, std::numeric_limits<double>::quiet_NaN(), HUGE_VAL}) {
    const std::string wrong = expect_error<ValueError>([&] { dist::powersgd_hook({.min_compression_rate = rate}); },
                                                       {"min_compression_rate must be a finite number above 0, got"});
    if (!wrong.empty()) return wrong;
  }
  return expect_error<ValueError>([] { dist::powersgd_hook({.start_powersgd_iter = 1}); }, {"at least 2", "got 1"});
}
const AddRankCase add_start("PowerSGD and local SGD begin after as many backwards as in PyTorch", &check_start);

// A gradient of zeros, as of an unused parameter, does not break the approximation in later rounds.
std::string check_zeros(const dist::ProcessGroupPtr& group) {
  const auto hook =
      dist::powersgd_hook({.matrix_approximation_rank = 2, .min_compression_rate = 0.5, .use_error_feedback = false});
  RandomGenerator generator(4);
  const Tensor meant = matmul(randn({8, 2}, kFloat64, &generator), randn({2, 8}, kFloat64, &generator));
  const Tensor buffer = group->allocate(64, kFloat64);
  const Tensor gradient = view::as_strided(buffer, {8, 8}, {8, 1}, 0);
  for (int round = 0; round < 5; ++round) {
    if (round == 3) {
      gradient.fill_(0.0);
    } else {
      gradient.copy_(meant);
    }
    hook->run(*group, dist::GradBucket(0, true, buffer, {meant}, {gradient}), {.op = dist::ReduceOp::Avg}, {})->wait();
  }
  return compare(values_of({gradient}), values_of({meant}), 1e-9);
}
const AddRankCase add_zeros("PowerSGD goes on after a gradient of zeros", &check_zeros);

std::string check_refused(const dist::ProcessGroupPtr& group) {
  const auto powersgd = dist::powersgd_hook({.min_compression_rate = 1});
  const auto local = dist::post_local_sgd_hook(2);
  const Tensor count = tensor<int64_t>({7});
  std::vector<std::string> wrong;
  for (const dist::CommHookPtr& hook : {powersgd, local}) {
    hook->load_state_dict({{"iteration", count}});
    wrong.push_back(
        expect_error<ValueError>([&] { hook->load_state_dict({}); }, {hook->name(), "no entry 'iteration'"}));
    wrong.push_back(expect_error<ValueError>(
        [&] {
          hook->load_state_dict({{"iteration", ones({1})}});
        },
        {"'iteration' of the state is", "expected one int64"}));
    wrong.push_back(expect_error<ValueError>(
        [&] {
          hook->load_state_dict({{"iteration", tensor<int64_t>({-2})}});
        },
        {"'iteration' of the state is -2"}));
    wrong.push_back(expect_error<ValueError>(
        [&] {
          hook->load_state_dict({{"iteration", count}, {"0.r", ones({2, 2})}});
        },
        {"'0.r' that does not belong"}));
    const auto state = hook->state_dict();
    if (state.size() != 1 || state[0].second.to_vector<int64_t>()[0] != 7) return "a refused state changed something";
  }
  wrong.push_back(expect_error<ValueError>(
      [&] {
        powersgd->load_state_dict({{"iteration", count}, {"0.q", ones({2})}});
      },
      {"'0.q' of the state is", "expected a floating matrix"}));
  // A state that fits no gradient is found on all ranks when the gradient arrives.
  powersgd->load_state_dict({{"iteration", count}, {"0.q", ones({3, 2})}});
  const Tensor buffer = group->allocate(64, kFloat32);
  const Tensor gradient = view::as_strided(buffer, {8, 8}, {8, 1}, 0);
  gradient.fill_(1.0);
  wrong.push_back(expect_error<ValueError>(
      [&] {
        powersgd->run(*group, dist::GradBucket(0, true, buffer, {gradient}, {gradient}), {.op = dist::ReduceOp::Avg},
                      {});
      },
      {"the loaded '0.q' is", "[3, 2]", "needs", "[8, 1]"}));
  for (const std::string& each : wrong) {
    if (!each.empty()) return each;
  }
  return "";
}
const AddRankCase add_refused("states of hooks that do not fit are refused", &check_refused);

}  // namespace brigade::test::hook_resume_cases
