// The process group over NCCL; without a GPU, over the stand-in of evidence/stand_ins.
#include "device_collectives.h"
#include "hold_stream.h"
#include "on_gpus.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/nccl/library.h>
#include <brigade/kernels/elementwise.h>
#include <dist/nets.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <thread>

// Compares with NCCL's own header if the toolkit has one.
#if defined(BRIGADE_REAL_CUDA) && __has_include(<nccl.h>)
#include <nccl.h>
#define BRIGADE_TEST_HAS_NCCL_H
#endif

namespace brigade::test::nccl_test {
namespace nccl = brigade::dist::nccl;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

#ifdef BRIGADE_TEST_HAS_NCCL_H
template <class A, class B>
constexpr bool same(A a, B b) {
  return static_cast<int>(a) == static_cast<int>(b);
}
static_assert(sizeof(nccl::UniqueId) == sizeof(ncclUniqueId) && sizeof(nccl::Result) == sizeof(ncclResult_t));
static_assert(sizeof(nccl::DataType) == sizeof(ncclDataType_t) && sizeof(nccl::RedOp) == sizeof(ncclRedOp_t));
static_assert(same(nccl::Result::Success, ncclSuccess) && same(nccl::Result::InProgress, ncclInProgress) &&
              same(nccl::Result::RemoteError, ncclRemoteError) && same(nccl::Result::InvalidUsage, ncclInvalidUsage) &&
              same(nccl::Result::InvalidArgument, ncclInvalidArgument) &&
              same(nccl::Result::InternalError, ncclInternalError) &&
              same(nccl::Result::SystemError, ncclSystemError) &&
              same(nccl::Result::UnhandledCudaError, ncclUnhandledCudaError));
static_assert(same(nccl::DataType::Uint8, ncclUint8) && same(nccl::DataType::Int32, ncclInt32) &&
              same(nccl::DataType::Int64, ncclInt64) && same(nccl::DataType::Float16, ncclFloat16) &&
              same(nccl::DataType::Float32, ncclFloat32) && same(nccl::DataType::Float64, ncclFloat64) &&
              same(nccl::DataType::Bfloat16, ncclBfloat16));
static_assert(same(nccl::RedOp::Sum, ncclSum) && same(nccl::RedOp::Max, ncclMax) && same(nccl::RedOp::Min, ncclMin) &&
              same(nccl::RedOp::Avg, ncclAvg));
static_assert(offsetof(nccl::Config, size) == offsetof(ncclConfig_t, size) &&
              offsetof(nccl::Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(nccl::Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(nccl::Config, blocking) == offsetof(ncclConfig_t, blocking));
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 19, 0)
static_assert(std::is_invocable_v<decltype(&ncclMemAlloc), void**, size_t>);
static_assert(std::is_invocable_v<decltype(&ncclMemFree), void*>);
static_assert(std::is_invocable_v<decltype(&ncclCommRegister), ncclComm_t, void*, size_t, void**>);
static_assert(std::is_invocable_v<decltype(&ncclCommDeregister), ncclComm_t, void*>);
#endif
#if NCCL_VERSION_CODE >= NCCL_VERSION(2, 18, 0)
static_assert(nccl::kSplitNoColor == NCCL_SPLIT_NOCOLOR);
static_assert(
    std::is_invocable_r_v<ncclResult_t, decltype(&ncclCommSplit), ncclComm_t, int, int, ncclComm_t*, ncclConfig_t*>);
#endif
// Compared as functions, since handles and enumerations are passed in the same way.
static_assert(
    std::is_invocable_v<decltype(&ncclCommInitRankConfig), ncclComm_t*, int, ncclUniqueId, int, ncclConfig_t*>);
static_assert(std::is_invocable_v<decltype(&ncclAllReduce), const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t>);
static_assert(std::is_invocable_v<decltype(&ncclBroadcast), const void*, void*, size_t, ncclDataType_t, int, ncclComm_t,
                                  cudaStream_t>);
static_assert(std::is_invocable_v<decltype(&ncclAllGather), const void*, void*, size_t, ncclDataType_t, ncclComm_t,
                                  cudaStream_t>);
static_assert(std::is_invocable_v<decltype(&ncclReduceScatter), const void*, void*, size_t, ncclDataType_t, ncclRedOp_t,
                                  ncclComm_t, cudaStream_t>);
static_assert(std::is_invocable_r_v<ncclResult_t, decltype(&ncclSend), const void*, size_t, ncclDataType_t, int,
                                    ncclComm_t, cudaStream_t>);
static_assert(std::is_invocable_r_v<ncclResult_t, decltype(&ncclRecv), void*, size_t, ncclDataType_t, int, ncclComm_t,
                                    cudaStream_t>);
static_assert(std::is_invocable_r_v<ncclResult_t, decltype(&ncclGroupStart)> &&
              std::is_invocable_r_v<ncclResult_t, decltype(&ncclGroupEnd)>);
TEST_CASE("the configuration of a communicator is that of NCCL's header") {
  const ncclConfig_t theirs = NCCL_CONFIG_INITIALIZER;
  CHECK(nccl::Config().magic == theirs.magic);
}
#endif

}  // namespace

TEST_CASE("every collective reduces, sends and gathers what the devices hold, in every dtype") {
  for (const int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    on_gpus(ranks, [&](const dist::ProcessGroupPtr& group, Device device) {
      const int rank = group->rank();
      CHECK(std::string(group->backend()) == "nccl");
      check_collectives(*group, device, {kFloat32, kFloat64, kFloat16, kBFloat16, kInt64, kInt32, kUInt8});
      for (const DType dtype : {kFloat32, kFloat64, kFloat16, kBFloat16}) {
        const Tensor mean = filled(4 * rank, {3}, dtype, device);
        group->all_reduce(mean, {.op = dist::ReduceOp::Avg})->wait();
        if (ranks != 3) all_are(mean, 2 * (ranks - 1));  // thirds are not exact
      }
      const Tensor either = filled(rank == 0 ? 1 : 0, {5}, kBool, device);
      group->all_reduce(either)->wait();
      all_are(kernels::cast(either, kFloat32), 1);
      group->all_reduce(filled(0, {0}, kFloat32, device))->wait();
      // CPU tensors, texts, and barriers work on the same group.
      const Tensor on_host = full({4}, rank + 1.0);
      group->all_reduce(on_host)->wait();
      all_are(on_host, ranks * (ranks + 1) / 2);
      CHECK(group->all_gather_text("rank " + std::to_string(rank)).back() == "rank " + std::to_string(ranks - 1));
      group->barrier();
      group->monitored_barrier(std::chrono::seconds(5));
      // All works were waited for; the recorder marks them as finished eventually.
      const auto unfinished = [&] {
        return std::ranges::count(group->flight_recorder().entries(), 0, &dist::CollectiveInfo::finished);
      };
      for (int i = 0; i < 500 && unfinished() > 0; ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      CHECK(unfinished() == 0);
    });
  }
}

TEST_CASE("a collective follows what is queued before it, and what is queued after it sees the result") {
  for (const int ranks : {2, 4})
    on_gpus(ranks, [](const dist::ProcessGroupPtr& group, Device device) { check_stream_order(*group, device); });
}

TEST_CASE("what a collective reads and writes lives until the device is done, whoever lets go of it") {
  on_gpus(2, [](const dist::ProcessGroupPtr& group, Device device) {
    for (int round = 0; round < 20; ++round) {
      const Tensor kept = filled(0, {2 * 700}, kFloat32, device);
      dist::WorkPtr work;
      {
        const Tensor sent = filled(group->rank() + 1, {700}, kFloat32, device);
        work = group->all_gather(kept, sent);
      }
      // Would reuse the memory of `sent`.
      const Tensor other = filled(-7, {700}, kFloat32, device);
      work->wait();
      all_are(view::slice(kept, 0, 0, 700), 1);
      all_are(view::slice(kept, 0, 700, 1400), 2);
      all_are(other, -7);
    }
  });
}

TEST_CASE("ranks that meet in different collectives learn it, with both lines, and nobody hangs") {
  const auto counts = errors_of(2, [](const dist::ProcessGroupPtr& group, Device device) {
    const int64_t numel = group->rank() == 0 ? 10 : 20;
    group->all_reduce(filled(1, {numel}, kFloat32, device), {.description = "bucket"})->wait();
  });
  const auto kinds = errors_of(2, [](const dist::ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(1, {8}, kFloat32, device);
    if (group->rank() == 0) {
      group->all_reduce(x)->wait();
    } else {
      group->broadcast(x)->wait();
    }
    all_are(x, 0);  // not reached
  });
  // Descriptions that differ only at their end.
  const auto names = errors_of(2, [](const dist::ProcessGroupPtr& group, Device device) {
    const std::string description = std::string(300, 'd') + (group->rank() == 0 ? "usual" : "odd");
    group->all_reduce(filled(1, {4}, kFloat32, device), {.description = description})->wait();
  });
  if (device_count(DeviceType::CUDA) < 2) return;
  for (const std::string& error : names) {
    CHECK_MESSAGE(has(error, "dusual\""), error);
    CHECK_MESSAGE(has(error, "dodd\""), error);
  }
  for (const std::string& error : counts) {
    CHECK_MESSAGE(has(error, "10 x float32"), error);
    CHECK_MESSAGE(has(error, "20 x float32"), error);
    CHECK_MESSAGE(has(error, "nccl_test.cpp:"), error);
  }
  CHECK(counts[0] == counts[1]);
  for (const std::string& error : kinds) {
    CHECK_MESSAGE(has(error, "all_reduce"), error);
    CHECK_MESSAGE(has(error, "broadcast"), error);
  }
}

TEST_CASE("a rank that does not come is named after the time-out, and the group says so from then on") {
  std::string again;
  const auto errors = errors_of(
      2,
      [&](const dist::ProcessGroupPtr& group, Device device) {
        group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
        if (group->rank() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1500));
          return;
        }
        const dist::WorkPtr work = group->all_reduce(filled(1, {4}, kFloat32, device), {.description = "late"});
        try {
          work->wait();
        } catch (const TimeoutError&) {
          CHECK(work->is_completed());
          try {
            group->all_reduce(filled(1, {4}, kFloat32, device));
          } catch (const TimeoutError& error) {
            again = error.what();
          }
          throw;
        }
      },
      std::chrono::milliseconds(400));
  if (device_count(DeviceType::CUDA) < 2) return;
  CHECK_MESSAGE(has(errors[0], "Rank 1 did not come to"), errors[0]);
  CHECK_MESSAGE(has(errors[0], "\"late\""), errors[0]);
  CHECK(again == errors[0]);
}

TEST_CASE("a rank that throws takes its peers out of the collective, with its words") {
  const auto errors = errors_of(3, [](const dist::ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(1, {4}, kFloat32, device);
    group->all_reduce(x)->wait();
    if (group->rank() == 2) {
      group->note_failure("no more apples");
      throw ValueError("no more apples");
    }
    group->all_reduce(x)->wait();
    all_are(x, 0);  // not reached
  });
  if (device_count(DeviceType::CUDA) < 3) return;
  for (const int rank : {0, 1})
    CHECK_MESSAGE(has(errors[static_cast<size_t>(rank)], "no more apples"), errors[static_cast<size_t>(rank)]);
}

TEST_CASE("a device that does not come to its end is given up after twice the time-out") {
  // Rank 1 announces the collective, but its stream never reaches it.
  const auto errors = errors_of(
      2,
      [](const dist::ProcessGroupPtr& group, Device device) {
        const Tensor x = filled(1, {4}, kFloat32, device);
        group->all_reduce(x)->wait();
        std::jthread held;
        if (group->rank() == 1) held = hold_stream(device);
        group->all_reduce(x, {.description = "stuck"})->wait();
        cuda::current_stream(device.index).synchronize();
        group->all_reduce(x)->wait();
      },
      std::chrono::milliseconds(300));
  if (device_count(DeviceType::CUDA) < 2) return;
  // The first rank to detect it notifies the other.
  for (const std::string& error : errors)
    CHECK_MESSAGE(has(error, "did not come to its end within 600 ms"), error);
  CHECK_MESSAGE((has(errors[0], "\"stuck\"") && has(errors[1], "\"stuck\"")), errors[0], " / ", errors[1]);
}

TEST_CASE("a device that is long behind what the host has queued is waited for") {
  // Longer than twice the time-out, equally on all ranks: micro-batches queued without a wait.
  on_gpus(
      2,
      [](const dist::ProcessGroupPtr& group, Device device) {
        const Tensor x = filled(1, {4}, kFloat32, device);
        group->all_reduce(x)->wait();
        const std::jthread held = hold_stream(device);
        group->all_reduce(x)->wait();
        all_are(x, 4);
        group->all_reduce(x)->wait();
        all_are(x, 8);
      },
      std::chrono::milliseconds(300));
}

TEST_CASE("abort ends what is under way, on this rank and on its peers") {
  const auto errors = errors_of(2, [](const dist::ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(1, {4}, kFloat32, device);
    group->all_reduce(x)->wait();
    if (group->rank() == 1) {
      group->abort("enough");
      group->all_reduce(x)->wait();
    }
    group->all_reduce(x)->wait();
  });
  if (device_count(DeviceType::CUDA) < 2) return;
  CHECK_MESSAGE(has(errors[0], "enough"), errors[0]);
  CHECK_MESSAGE(has(errors[1], "the nccl group was aborted on rank 1: enough"), errors[1]);
}

#ifndef BRIGADE_REAL_CUDA
// On real GPUs, the ranks have to be processes (scripts/gpu-check.sh).
TEST_CASE("ranks may share a device where that is asked for, to test with") {
  setenv("BRIGADE_NCCL_SHARE_GPU", "1", 1);
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& control) {
    const dist::ProcessGroupPtr group = dist::make_nccl_group(control);
    set_current_device(kDevice);
    // Ranks in separate processes do not share the default stream. Here one rank waiting for the collective in it would
    // block the other's part.
    const cuda::StreamGuard own(cuda::Stream::create());
    const Tensor x = filled(group->rank() + 1, {4}, kFloat32, kDevice);
    group->all_reduce(x)->wait();
    all_are(x, 3);
  });
  for (const char* name : {"BRIGADE_NCCL_SHARE_GPU", "NCCL_HOSTID", "NCCL_SOCKET_IFNAME", "NCCL_NET", "NCCL_IB_DISABLE",
                           "NCCL_MNNVL_ENABLE", "NCCL_NVLS_ENABLE"})
    unsetenv(name);
}
#endif

TEST_CASE("ranks that share a device, and tensors of another one, are refused in words") {
  std::mutex mutex;
  std::vector<std::string> shared;
  if (device_count(DeviceType::CUDA) < 2) return;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& control) {
    const dist::ProcessGroupPtr group = dist::make_nccl_group(control);
    const Device device(kCUDA, 0);
    set_current_device(device);
    try {
      group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
    } catch (const DistError& error) {
      const std::lock_guard lock(mutex);
      shared.push_back(error.what());
    }
    // CPU collectives still work.
    const Tensor on_host = full({1}, 2.0);
    group->all_reduce(on_host)->wait();
    all_are(on_host, 4);
  });
  REQUIRE(shared.size() == 2);
  CHECK_MESSAGE(has(shared[0], "ranks 0 and 1 share a GPU"), shared[0]);
  CHECK(shared[0] == shared[1]);
  on_gpus(2, [](const dist::ProcessGroupPtr& group, Device device) {
    group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
    const Device other(kCUDA, 1 - device.index);
    CHECK_THROWS_WITH_AS(group->all_reduce(filled(1, {4}, kFloat32, other)),
                         doctest::Contains("make a group per device"), DeviceError);
  });
  CHECK_THROWS_AS(dist::make_nccl_group(nullptr), ValueError);
}

#ifndef BRIGADE_REAL_CUDA
extern "C" size_t nccl_stand_in_registered(const void* data);
TEST_CASE("buckets are memory of NCCL's, registered while the communicator and they live") {
  std::vector<Tensor> left(2);
  on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
    manual_seed(11);
    BranchingNet net;
    net->to(device);
    const void* gone = nullptr;
    {
      dist::DistributedDataParallel ddp(net, group);
      const Tensor y = ddp(numbers({6, 4}, kFloat32, 3).to(device));
      (y * y).mean().backward();
      const Tensor grad = net->parameters()[0].grad();
      gone = grad.storage()->data();
      CHECK(nccl_stand_in_registered(gone) >= grad.storage()->bytes());
      net->zero_grad();
    }
    // Memory that the device may still use is not freed at once; later collectives free it.
    const std::jthread held = hold_stream(device);
    group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
    CHECK(nccl_stand_in_registered(gone) > 0);
    cuda::current_stream(device.index).synchronize();
    group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
    CHECK(nccl_stand_in_registered(gone) == 0);
    // Memory that outlives the group is freed later.
    left[static_cast<size_t>(group->rank())] = group->allocate(8, kFloat32, device);
    CHECK(nccl_stand_in_registered(left[static_cast<size_t>(group->rank())].raw_data()) == 32);
    CHECK(group->allocate(0, kFloat32, device).numel() == 0);
  });
}
#endif

TEST_CASE("memory is given back on one thread while another frees some, and waits for the device") {
  on_gpus(2, [](const dist::ProcessGroupPtr& group, Device device) {
    const auto meet = [&] { group->all_reduce(filled(1, {4}, kFloat32, device))->wait(); };
    meet();
    Tensor early = group->allocate(8, kFloat32, device), late = group->allocate(8, kFloat32, device);
    early = Tensor();
    meet();  // sets it aside
    device_runtime(device).synchronize(device.index);
    const auto reached = device_runtime(device).new_event(device.index);
    const std::jthread held = hold_stream(device);
    reached->record();
    std::jthread other([&] {
      std::this_thread::sleep_for(kHeld / 5);
      late = Tensor();
      CHECK(!reached->query());
    });
    meet();  // frees it
  });
}

TEST_CASE("a backward waits for the peers' hosts and for no device; the numbers of a device are reported by the next") {
  std::mutex mutex;
  std::vector<std::string> told;
  on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
    manual_seed(11);
    BranchingNet net;
    net->to(device);
    dist::DistributedDataParallel ddp(net, group);
    const Tensor good = numbers({6, 4}, kFloat32, 3).to(device);
    const Tensor bad = group->rank() == 1 ? full({6, 4}, std::numeric_limits<double>::infinity()).to(device) : good;
    const auto step = [&](const Tensor& x) {
      const Tensor y = ddp(x);
      (y * y).mean().backward();
      net->zero_grad();
    };
    step(good);
    step(good);
    free_old_buckets(group, device);
    const auto reached = device_runtime(device).new_event(device.index);
    std::jthread held = hold_stream(device, std::chrono::minutes(1));
    reached->record();
    step(bad);
    CHECK(!reached->query());
    CHECK(ddp.advisories().empty());
    held.request_stop();
    reached->synchronize();
    step(good);
    const std::lock_guard lock(mutex);
    for (const dist::Verdict& verdict : ddp.advisories())
      told.push_back(verdict.message);
  });
  if (device_count(DeviceType::CUDA) < 2) return;
  REQUIRE(told.size() == 2);  // one from each rank
  for (const std::string& message : told) {
    CHECK_MESSAGE(has(message, "on rank 1 in backward 3 at"), message);
    CHECK_MESSAGE(has(message, "the loss of the backward at"), message);
  }
}

TEST_CASE("a device that is given up after a backward: a later backward throws, with the bucket and the reason") {
  const auto errors = errors_of(
      2,
      [](const dist::ProcessGroupPtr& group, Device device) {
        manual_seed(11);
        BranchingNet net;
        net->to(device);
        dist::DistributedDataParallel ddp(net, group, {.diagnosis = false});
        const Tensor x = numbers({6, 4}, kFloat32, 3).to(device);
        const auto step = [&] {
          const Tensor y = ddp(x);
          (y * y).mean().backward();
          net->zero_grad();
        };
        step();
        cuda::current_stream(device.index).synchronize();
        std::jthread held;
        if (group->rank() == 1) held = hold_stream(device);
        step();
        cuda::current_stream(device.index).synchronize();  // like reading the loss
        step();
      },
      std::chrono::milliseconds(300));
  if (device_count(DeviceType::CUDA) < 2) return;
  for (const std::string& error : errors) {
    CHECK_MESSAGE(has(error, "bucket"), error);
    CHECK_MESSAGE(has(error, "did not come to its end within 600 ms"), error);
  }
}

TEST_CASE("works outlive their group") {
  std::vector<dist::WorkPtr> left(2);
  if (!on_gpus(2, [&](const dist::ProcessGroupPtr& group, Device device) {
        left[static_cast<size_t>(group->rank())] = group->all_reduce(filled(1, {4}, kFloat32, device));
        // The ranks have met; the group completes the remaining device work when it ends.
        left[static_cast<size_t>(group->rank())]->wait();
      }))
    return;
  for (const dist::WorkPtr& work : left) {
    CHECK(work->is_completed());
    CHECK_NOTHROW(work->wait());
  }
}

TEST_CASE("a library that is missing, is something else or is too old is named, with what to do") {
  CHECK_THROWS_WITH_AS(nccl::load("/no/such/libnccl.so.2"), doctest::Contains("/no/such/libnccl.so.2"), DistError);
  CHECK_THROWS_WITH_AS(nccl::load("libm.so.6"), doctest::Contains("libm.so.6 has no ncclGetVersion; install NCCL"),
                       DistError);
#ifdef NCCL_TOO_OLD
  CHECK_THROWS_WITH_AS(nccl::load(NCCL_TOO_OLD), doctest::Contains("is version 2.8.4, and 2.14 is the oldest"),
                       DistError);
#endif
  CHECK(nccl::version_in_words(22809) == "2.28.9");
  CHECK(nccl::version_in_words(21000) == "2.10.0");
}

}  // namespace brigade::test::nccl_test
