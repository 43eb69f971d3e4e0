// Bugs planted into DDP over NCCL, which the tests must detect: a stream that does not wait for another, a bucket that
// is overwritten while it is sent, a different order of collectives on one rank. They validate the tests of NCCL: if
// the stand-in let these bugs pass, those tests would prove nothing.
#include "device_collectives.h"
#include "forgetful_runtime.h"
#include "on_gpus.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/optim/optim.h>
#include <dist/nets.h>

#include <algorithm>
#include <mutex>

#ifndef BRIGADE_REAL_CUDA  // on a GPU, a bug may stay hidden

#include <simt/options.h>
#include <simt/runtime.h>

namespace brigade::test::nccl_planted_bugs_test {
namespace {

using Values = std::vector<std::vector<double>>;

// The result of a few steps on each rank.
struct Trained {
  std::vector<Values> parameters;
  std::string error;
};

Trained train(int ranks, Forgotten forgotten) {
  Trained trained;
  trained.parameters.resize(static_cast<size_t>(ranks));
  try {
    on_gpus(ranks, [&](const dist::ProcessGroupPtr& group, Device device) {
      manual_seed(11);
      BranchingNet net;
      net->to(device);
      dist::DistributedDataParallel ddp(net, group, {.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
      optim::SGD optimizer(net->parameters(), {.lr = 0.1, .momentum = 0.9});
      for (int step = 0; step < 4; ++step) {
        const Tensor x = numbers({6, 4}, kFloat32, static_cast<uint64_t>(10 * step + group->rank() + 1)).to(device);
        forget_waits(forgotten, device);
        optimizer.zero_grad(false);  // writes to the buckets
        const Tensor y = ddp(x);
        (y * y).mean().backward();
        optimizer.step();
        forget_waits(Forgotten::Nothing, device);
      }
      for (const Tensor& parameter : net->parameters())
        trained.parameters[static_cast<size_t>(group->rank())].push_back(parameter.to_vector<double>());
    });
  } catch (const std::exception& error) {
    trained.error = error.what();
  }
  return trained;
}

// The number of stream orders to try before a bug counts as missed.
constexpr uint64_t kOrders = 20;

// The number of orders tried until the bug showed; 0 if it never did.
template <class Shows>
uint64_t orders_until(const Shows& shows) {
  const uint64_t first = simt::options().seed;
  for (uint64_t order = 1; order <= kOrders; ++order) {
    const simt::ScopedOptions options({.seed = first + order});
    const bool found = shows();
    simt::discard_queued();  // left over from a failure
    if (found) return order;
  }
  return 0;
}

}  // namespace

TEST_CASE("streams that do not wait for each other are found: gradients sent too early, averages read too early") {
  const ForgetfulRuntime runtime;
  for (const int ranks : {2, 4}) {
    CAPTURE(ranks);
    const Trained right = train(ranks, Forgotten::Nothing);
    REQUIRE(right.error == "");
    CHECK(orders_until([&] {
            const Trained again = train(ranks, Forgotten::Nothing);
            return !again.error.empty() || again.parameters != right.parameters;
          }) == 0);
    for (const Forgotten forgotten : {Forgotten::WaitsOfOthers, Forgotten::WaitsOfCurrent}) {
      const uint64_t orders = orders_until([&] {
        const int before = runtime.left_out();
        const Trained wrong = train(ranks, forgotten);
        CHECK(runtime.left_out() > before);
        return !wrong.error.empty() || wrong.parameters != right.parameters;
      });
      CHECK(orders > 0);
      MESSAGE(ranks, " ranks, ", forgotten == Forgotten::WaitsOfOthers ? "sent" : "read", " too early: found in order ",
              orders);
    }
  }
}

TEST_CASE("a bucket that is written while it is sent is found") {
  const uint64_t orders = orders_until([] {
    bool wrong = false;
    std::mutex mutex;
    try {
      on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
        const Tensor bucket = filled(group->rank() + 1, {64}, kFloat32, device);
        const dist::WorkPtr work = group->all_reduce(bucket);
        kernels::fill(bucket, 7);  // the next backward, before the wait
        work->wait();
        const auto values = bucket.to_vector<double>();
        const std::lock_guard lock(mutex);
        wrong = wrong || std::ranges::any_of(values, [](double value) { return value != 3; });
      });
    } catch (const std::exception& error) {
      const std::string text = error.what();
      CHECK_MESSAGE(text.find("wrote what it sends while the collective was under way") != std::string::npos, text);
      return true;
    }
    CHECK(wrong);  // in every order
    return false;
  });
  CHECK(orders > 0);
}

TEST_CASE("a group that ends while its device fails ends no program") {
  // The next call that queries the device reports the failure: in many orders, that is the destruction of the group.
  uint64_t ended = 0;
  orders_until([&] {
    ++ended;
    try {
      on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
        const Tensor bucket = filled(group->rank() + 1, {64}, kFloat32, device);
        group->all_reduce(bucket);
        kernels::fill(bucket, 7);
      });
    } catch (const std::exception& error) {
      const std::string text = error.what();
      CHECK_MESSAGE(text.find("wrote what it sends while the collective was under way") != std::string::npos, text);
    }
    return false;
  });
  CHECK(ended == kOrders);
}

TEST_CASE("buckets that one rank sends in another order are named on all ranks, before anything is used") {
  for (const int ranks : {2, 4}) {
    std::mutex mutex;
    std::vector<std::string> errors;
    CHECK_THROWS(on_gpus(ranks, [&](const dist::ProcessGroupPtr& group, Device device) {
      const Tensor first = filled(1, {8}, kFloat32, device);
      const Tensor second = filled(2, {8}, kFloat32, device);
      const bool swaps = group->rank() == 1;
      try {
        const auto a = group->all_reduce(swaps ? second : first, {.description = swaps ? "bucket 1" : "bucket 0"});
        const auto b = group->all_reduce(swaps ? first : second, {.description = swaps ? "bucket 0" : "bucket 1"});
        a->wait();
        b->wait();
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        errors.push_back(error.what());
        throw;
      }
    }));
    CHECK(errors.size() == static_cast<size_t>(ranks));
    for (const std::string& error : errors) {
      CHECK_MESSAGE(error.find("bucket 0") != std::string::npos, error);
      CHECK_MESSAGE(error.find("bucket 1") != std::string::npos, error);
    }
  }
}

}  // namespace brigade::test::nccl_planted_bugs_test

#endif
