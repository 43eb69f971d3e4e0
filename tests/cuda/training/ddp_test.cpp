// DistributedDataParallel on a device, compared with the CPU: gradients, verdicts, hooks, unused parameters.
#include "on_device.h"

#include <near.h>

#include <brigade/autograd/functional.h>
#include <brigade/autograd/grad_mode.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/optim/optim.h>
#include <dist/nets.h>

#include <algorithm>
#include <limits>
#include <mutex>

namespace brigade::test::ddp_test {
namespace {

struct Job {
  dist::DDPOptions options;
  DType dtype = kFloat32;
  dist::CommHookPtr (*hook)() = nullptr;
  // The rank that skips layer b, and the step in which it does; -1: none.
  int skips = -1;
  int skip_step = 1;
  int accumulate = 1;  // backwards per step, all but the last under no_sync
  int steps = 3;
  int ranks = 2;
};

struct Outcome {
  std::vector<std::vector<double>> gradients;  // of rank 0, per step and parameter
  std::vector<std::string> errors;             // of rank 0, per step; "" without an error
  std::vector<std::string> advice;             // verdict kinds of rank 0
  bool equal = true;                           // whether all ranks have the same gradients
};

// `where` is "cpu", "cuda" (through host memory), or "nccl" (device to device).
Outcome run(const Job& job, const std::string& where) {
  Outcome outcome;
  std::mutex mutex;
  std::vector<std::vector<std::vector<double>>> gradients(static_cast<size_t>(job.ranks));
  dist::run_threads(job.ranks, [&](const dist::ProcessGroupPtr& threads) {
    const int rank = threads->rank();
    const Device device = choose_device(where == "nccl" ? "cuda" : where, rank);
    set_current_device(device);
    const dist::ProcessGroupPtr group = where == "nccl" ? dist::make_nccl_group(threads) : threads;
    manual_seed(11);
    BranchingNet net;
    net->to(job.dtype);
    net->to(device);
    dist::DistributedDataParallel ddp(net, group, job.options);
    if (job.hook) ddp.register_comm_hook(job.hook());
    optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
    for (int step = 0; step < job.steps; ++step) {
      net->skip_b = rank == job.skips && step == job.skip_step;
      optimizer.zero_grad();
      std::string error;
      try {
        for (int part = 0; part < job.accumulate; ++part) {
          const auto seed = static_cast<uint64_t>(100 * step + 10 * rank + part + 1);
          const Tensor x = numbers({6, 4}, job.dtype, seed).to(device);
          const auto backward = [&] {
            const Tensor y = ddp(x);
            (y * y).mean().backward();
          };
          if (part + 1 < job.accumulate) {
            const auto no_sync = ddp.no_sync();
            backward();
          } else {
            backward();
          }
        }
        optimizer.step();
      } catch (const dist::ReductionError& caught) {
        error = caught.what();
      }
      const std::lock_guard lock(mutex);
      if (rank == 0) outcome.errors.push_back(error);
      for (const Tensor& parameter : net->parameters()) {
        const Tensor grad = parameter.grad();
        if (grad.defined() && grad.device() != device) error = "a gradient is on another device";
        gradients[static_cast<size_t>(rank)].push_back(grad.defined() ? grad.to_vector<double>()
                                                                      : std::vector<double>());
      }
    }
    const std::lock_guard lock(mutex);
    if (rank == 0) {
      for (const dist::Verdict& verdict : ddp.advisories())
        outcome.advice.push_back(verdict.kind);
    }
  });
  outcome.equal = std::ranges::all_of(gradients, [&](const auto& each) { return each == gradients[0]; });
  outcome.gradients = gradients[0];
  return outcome;
}

void compare(const Outcome& here, const Outcome& there, double bound) {
  CHECK(there.equal == here.equal);
  CHECK(there.advice == here.advice);
  REQUIRE(there.errors.size() == here.errors.size());
  for (size_t step = 0; step < here.errors.size(); ++step)
    CHECK(there.errors[step] == here.errors[step]);
  REQUIRE(there.gradients.size() == here.gradients.size());
  double worst = 0;
  for (size_t i = 0; i < here.gradients.size(); ++i) {
    REQUIRE(there.gradients[i].size() == here.gradients[i].size());
    for (size_t k = 0; k < here.gradients[i].size(); ++k)
      worst = worse(worst, std::abs(there.gradients[i][k] - here.gradients[i][k]) /
                               std::max(1.0, std::abs(here.gradients[i][k])));
  }
  CHECK(worst <= bound);
}

// Runs on the CPU, on devices, and over NCCL with 2 and 4 ranks if each can have a device; gradients must agree within
// `bound`, everything else must be equal.
void compare(Job job, double bound) {
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    job.ranks = ranks;
    const Outcome here = run(job, "cpu");
    if (ranks == 2) compare(here, run(job, "cuda"), bound);
    if (device_count(DeviceType::CUDA) >= ranks) compare(here, run(job, "nccl"), bound);
  }
}

}  // namespace

TEST_CASE("gradients on a device are those on the CPU: one bucket, a bucket per parameter, copies, accumulation") {
  for (const bool as_view : {true, false}) {
    for (const double bucket_mb : {25.0, 1e-6}) {
      for (const int accumulate : {1, 3}) {
        CAPTURE(as_view);
        CAPTURE(bucket_mb);
        CAPTURE(accumulate);
        Job job;
        job.accumulate = accumulate;
        job.options.gradient_as_bucket_view = as_view;
        job.options.bucket_cap_mb = job.options.first_bucket_mb = bucket_mb;
        compare(job, 1e-5);
        job.dtype = kFloat64;
        compare(job, 1e-13);
      }
    }
  }
  Job half;
  half.dtype = kBFloat16;
  compare(half, 5e-2);
}

TEST_CASE("a parameter that one rank leaves out: the same error on a device, and the next step works") {
  for (const double bucket_mb : {25.0, 1e-6}) {
    Job job;
    job.skips = 1;
    job.options.bucket_cap_mb = job.options.first_bucket_mb = bucket_mb;
    const Outcome there = run(job, "cuda");
    REQUIRE(there.errors.size() == 3);
    CHECK(there.errors[0] == "");
    CHECK(there.errors[1].find("b.weight") != std::string::npos);
    CHECK(there.errors[2] == "");
    compare(job, 1e-5);
    job.options.find_unused_parameters = true;
    compare(job, 1e-5);
    CHECK(run(job, "cuda").errors[1] == "");
  }
}

TEST_CASE("communication hooks run on a device") {
  for (const auto hook : {&dist::allreduce_hook, &dist::fp16_compress_hook, &dist::bf16_compress_hook}) {
    for (const bool as_view : {true, false}) {
      Job job;
      job.hook = hook;
      job.options.gradient_as_bucket_view = as_view;
      compare(job, hook == &dist::allreduce_hook ? 1e-5 : 2e-2);
    }
  }
  Job powersgd;
  powersgd.hook = [] { return dist::powersgd_hook({}); };
  powersgd.steps = 4;
  compare(powersgd, 1e-4);
  // A hook that forgets to divide is detected on devices as well.
  Job wrong;
  wrong.steps = 1;
  wrong.hook = [] {
    return dist::make_comm_hook("sum", [](dist::ProcessGroup& group, const dist::GradBucket& bucket) {
      return group.all_reduce(bucket.buffer(), {.op = dist::ReduceOp::Sum});
    });
  };
  CHECK(run(wrong, "cuda").errors[0].find("a sum that was not divided by the world size") != std::string::npos);
}

TEST_CASE("a loss that is not finite is found and explained without looking at it beforehand") {
  std::mutex mutex;
  std::vector<std::string> messages;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const Device device = choose_device("cuda", group->rank());
    set_current_device(device);
    manual_seed(11);
    BranchingNet net;
    net->to(device);
    dist::DistributedDataParallel ddp(net, group);
    for (int step = 0; step < 2; ++step) {
      Tensor x = numbers({6, 4}, kFloat32, 3).to(device);
      if (group->rank() == 1 && step == 1) kernels::fill(x, std::numeric_limits<double>::infinity());
      const Tensor y = ddp(x);
      (y * y).mean().backward();
      net->zero_grad();
    }
    const std::lock_guard lock(mutex);
    if (group->rank() != 0) return;
    for (const dist::Verdict& verdict : ddp.advisories())
      messages.push_back(verdict.kind + ": " + verdict.message);
  });
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].find("non_finite_gradients") == 0);
  CHECK(messages[0].find("rank 1") != std::string::npos);
  CHECK(messages[0].find("the loss of the backward at") != std::string::npos);
}

}  // namespace brigade::test::ddp_test
