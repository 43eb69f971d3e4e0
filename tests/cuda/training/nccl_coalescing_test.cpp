// Coalesced collectives over NCCL: one NCCL group, and one meeting of the hosts.
#include "device_collectives.h"
#include "on_gpus.h"

#include <brigade/core/cuda/graph.h>
#include <brigade/core/factory.h>
#include <brigade/dist/groups/coalescing_manager.h>

#ifndef BRIGADE_REAL_CUDA
extern "C" size_t nccl_stand_in_commands();
#endif

namespace brigade::test::nccl_coalescing_test {
namespace {

using dist::CoalescingManager;
using dist::ProcessGroupPtr;

size_t commands() {
#ifndef BRIGADE_REAL_CUDA
  return nccl_stand_in_commands();
#else
  return 0;
#endif
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Gives the group a communicator.
void connect(const ProcessGroupPtr& group, Device device) {
  group->all_reduce(filled(1, {4}, kFloat32, device))->wait();
}

// Runs all-reduces of these sizes together and waits for them.
void reduce_together(const ProcessGroupPtr& group, Device device, const std::vector<int64_t>& sizes) {
  std::vector<Tensor> tensors;
  CoalescingManager together(group);
  for (const int64_t numel : sizes) {
    tensors.push_back(filled(1, {numel}, kFloat32, device));
    group->all_reduce(tensors.back());
  }
  together.end()->wait();
}

}  // namespace

TEST_CASE("collectives together are one command of the device and one entry of the recorder, with the right values") {
  for (const int ranks : {1, 2, 4}) {
    CAPTURE(ranks);
    [[maybe_unused]] const size_t before = commands();  // not counted on real GPUs
    if (!on_gpus(ranks, [&](const ProcessGroupPtr& group, Device device) {
          const int rank = group->rank();
          std::vector<Tensor> sums;
          CoalescingManager together(group);
          for (int i = 0; i < 20; ++i) {
            sums.push_back(filled(rank + i, {100 + i}, i % 3 ? kFloat32 : kInt64, device));
            group->all_reduce(sums.back());
          }
          const Tensor nothing = filled(0, {0}, kFloat32, device);
          group->all_reduce(nothing);
          const Tensor largest = filled(rank, {7}, kBFloat16, device);
          const dist::WorkPtr work = group->all_reduce(largest, {.op = dist::ReduceOp::Max});
          CHECK_THROWS_WITH_AS(work->wait(), doctest::Contains("before the coalescing manager of"), DistError);
          together.end()->wait();
          work->wait();
          for (int i = 0; i < 20; ++i)
            all_are(sums[static_cast<size_t>(i)], ranks * i + ranks * (ranks - 1) / 2);
          all_are(largest, ranks - 1);
          const std::vector<dist::CollectiveInfo> entries = group->flight_recorder().entries();
          REQUIRE(entries.size() == 1);
          CHECK_MESSAGE(describe(entries[0]).starts_with("22 coalesced: 100 x int64, 101 x float32, "),
                        describe(entries[0]));
          CHECK(has(to_string(entries[0].where), "nccl_coalescing_test.cpp:"));
        }))
      return;
#ifndef BRIGADE_REAL_CUDA
    CHECK(commands() - before == static_cast<size_t>(ranks == 1 ? 0 : ranks));
#endif
  }
}

TEST_CASE("all kinds go together over NCCL, roots of their own included") {
  for (const int ranks : {1, 3}) {
    on_gpus(ranks, [&](const ProcessGroupPtr& group, Device device) {
      const int rank = group->rank(), last = ranks - 1;
      const Tensor a = filled(rank, {5}, kFloat32, device), b = filled(rank, {9}, kFloat64, device);
      {
        const CoalescingManager together(group);
        group->broadcast(a, {.root = last});
        group->broadcast(b, {.root = 0});
      }
      all_are(a, last);
      all_are(b, 0);
      const Tensor gathered = filled(-1, {4 * ranks}, kFloat32, device), also = filled(-1, {ranks}, kInt32, device);
      {
        const CoalescingManager together(group);
        group->all_gather(gathered, filled(rank + 2, {4}, kFloat32, device));
        group->all_gather(also, filled(rank, {1}, kInt32, device));
      }
      const Tensor part = filled(-1, {4}, kFloat32, device), one = filled(-1, {1}, kInt32, device);
      {
        const CoalescingManager together(group);
        group->reduce_scatter(part, gathered);
        group->reduce_scatter(one, also);
      }
      for (int r = 0; r < ranks; ++r)
        all_are(view::slice(gathered, 0, 4 * r, 4 * r + 4), r + 2);
      all_are(part, ranks * (rank + 2));
      all_are(one, ranks * rank);
      // CPU collectives also work, in their order; mixing both devices is rejected.
      const Tensor on_host = full({3}, 1.0 * rank), other = full({2}, 1.0);
      CoalescingManager together(group);
      group->all_reduce(on_host);
      group->all_reduce(other);
      CHECK_THROWS_WITH_AS(group->all_reduce(a), doctest::Contains("has collected tensors of cpu"), DeviceError);
      together.end()->wait();
      all_are(on_host, ranks * (ranks - 1) / 2);
      all_are(other, ranks);
    });
  }
}

TEST_CASE("what is issued together follows what is queued before it, and is seen by what is queued after it") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    for (int round = 0; round < 25; ++round) {
      const cuda::StreamGuard guard(cuda::Stream::create());
      const Tensor x = filled(1, {5000}, kFloat32, device), y = filled(1, {300}, kFloat64, device);
      CoalescingManager together(group);
      group->all_reduce(x);
      group->all_reduce(y);
      for (int i = 0; i < 5; ++i) {  // nothing is issued yet
        kernels::scale_inplace(x, 2);
        kernels::scale_inplace(y, 3);
      }
      const dist::WorkPtr work = together.end();
      work->wait();
      kernels::scale_inplace(x, 0.5);
      all_are(x, 32);
      all_are(y, 486);
      CHECK(work->is_completed());
    }
  });
}

TEST_CASE("collectives together are captured into a graph, and each replay reduces again") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    connect(group, device);
    device_runtime(device).synchronize(device.index);  // no work must be pending during the capture
    const cuda::StreamGuard guard(cuda::Stream::create());
    const Tensor x = filled(1, {64}, kFloat32, device), y = filled(3, {32}, kFloat32, device);
    cuda::Graph graph;
    graph.capture([&] {
      CoalescingManager together(group);
      group->all_reduce(x);
      group->all_reduce(y);
      together.end()->wait();
    });
    for (int replay = 0; replay < 3; ++replay)
      graph.replay();
    all_are(x, 8);
    all_are(y, 24);
  });
}

TEST_CASE("a group that reduces in host memory stages what is issued together") {
  if (device_count(DeviceType::CUDA) == 0) return;
  const Device device(kCUDA, 0);
  dist::run_threads(3, [&](const ProcessGroupPtr& group) {
    set_current_device(device);
    const int rank = group->rank();
    const Tensor x = filled(rank, {1000}, kFloat32, device), y = filled(2, {3}, kFloat64, device);
    const Tensor gathered = filled(-1, {6}, kInt32, device);
    CoalescingManager together(group);
    group->all_reduce(x, {.description = "x"});
    group->all_reduce(y);
    together.end()->wait();
    {
      const CoalescingManager gathering(group);
      group->all_gather(gathered, filled(rank, {2}, kInt32, device));
    }
    all_are(x, 3);
    all_are(y, 6);
    for (int r = 0; r < 3; ++r)
      all_are(view::slice(gathered, 0, 2 * r, 2 * r + 2), r);
    const auto entries = group->flight_recorder().entries();
    REQUIRE(entries.size() == 3);
    CHECK(describe(entries[0]) == "part 1 of 2: x");
    CHECK(describe(entries[1]) == "part 2 of 2");
  });
}

TEST_CASE("ranks that issue other collectives together over NCCL learn in what they differ, and nobody hangs") {
  struct Difference {
    std::vector<int64_t> first, second;
    const char* told;
  };
  const Difference table[] = {
      {{8, 9}, {8, 9, 10}, "rank 0 issues 2 collectives together here, rank 1 3"},
      {{8, 9, 10}, {8, 11, 8}, "part 2 of 3 has 9 elements on rank 0, 11 on rank 1"},
      {{8, 9}, {9, 8}, "part 1 of 2 has 8 elements on rank 0, 9 on rank 1"},
  };
  for (const Difference& each : table) {
    const auto errors = errors_of(2, [&](const ProcessGroupPtr& group, Device device) {
      reduce_together(group, device, group->rank() == 0 ? each.first : each.second);
    });
    if (device_count(DeviceType::CUDA) < 2) return;
    for (const std::string& error : errors) {
      CHECK_MESSAGE(has(error, each.told), error);
      CHECK_MESSAGE(has(error, "nccl_coalescing_test.cpp:"), error);
    }
  }
  const auto errors = errors_of(2, [&](const ProcessGroupPtr& group, Device device) {
    if (group->rank() == 0) {
      reduce_together(group, device, {4, 4});
    } else {
      group->all_reduce(filled(1, {8}, kFloat32, device))->wait();
    }
  });
  for (const std::string& error : errors)
    CHECK_MESSAGE(has(error, "rank 0 issues 2 collectives together here, rank 1 this one by itself"), error);
}

#ifndef BRIGADE_REAL_CUDA
TEST_CASE("a call of a group that NCCL refuses is an error with NCCL's words, and nothing of the group runs") {
  std::vector<float> on_host(4);
  std::vector<size_t> before(2), after(2);
  const auto errors = errors_of(2, [&](const ProcessGroupPtr& group, Device device) {
    connect(group, device);
    group->barrier();
    const auto rank = static_cast<size_t>(group->rank());
    before[rank] = commands();
    group->barrier();
    const Tensor x = filled(1, {4}, kFloat32, device);
    const Tensor wrong = from_blob(on_host.data(), {4}, {kFloat32, device});  // only NCCL can detect this
    try {
      CoalescingManager together(group);
      group->all_reduce(x);
      group->all_reduce(wrong);
      together.end()->wait();
    } catch (const DistError&) {
      after[rank] = commands();
      throw;
    }
  });
  for (const std::string& error : errors) {
    CHECK_MESSAGE(has(error, "ncclGroupEnd failed"), error);
    CHECK_MESSAGE(has(error, "a buffer is not memory of device"), error);
  }
  CHECK(before == after);
}
#endif

}  // namespace brigade::test::nccl_coalescing_test
