// Device-to-device messages between ranks, over ncclSend and ncclRecv.
#include "device_collectives.h"
#include "hold_stream.h"
#include "on_gpus.h"

#include <core/error_of.h>

#include <brigade/core/cuda/graph.h>
#include <brigade/core/cuda/stream.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/dist/groups/point_to_point.h>

#include <thread>

#ifndef BRIGADE_REAL_CUDA
extern "C" size_t nccl_stand_in_messages();
#endif

namespace brigade::test::nccl_messages_test {
namespace {

using dist::P2POp;
using dist::ProcessGroupPtr;
using dist::WorkPtr;

constexpr std::chrono::milliseconds kShort{600};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("all ranks send from device to device before they receive, in a batch and without, beside collectives") {
  for (const int ranks : {2, 3, 4}) {
    CAPTURE(ranks);
#ifndef BRIGADE_REAL_CUDA
    const size_t before = nccl_stand_in_messages();
#endif
    if (!on_gpus(ranks, [&](const ProcessGroupPtr& group, Device device) {
          const int own = group->rank(), next = (own + 1) % ranks, last = (own + ranks - 1) % ranks;
          for (int round = 0; round < 3; ++round) {
            for (const DType dtype : {kFloat32, kInt64, kBFloat16}) {
              const Tensor mine = filled(own * 10 + round, {1000}, dtype, device);
              const Tensor theirs = filled(-1, {1000}, dtype, device), from_next = filled(-1, {3}, dtype, device);
              const Tensor back = filled(own + 50, {3}, dtype, device), nothing = filled(0, {0}, dtype, device);
              const Tensor sum = filled(1, {10}, kFloat32, device);
              // Collectives are posted at different points on each rank.
              WorkPtr reduced;
              if (own % 2 == 0) reduced = group->all_reduce(sum);
              const auto works = dist::batch_isend_irecv({{P2POp::Isend, mine, next, group},
                                                          {P2POp::Isend, nothing, next, group},
                                                          {P2POp::Irecv, theirs, last, group},
                                                          {P2POp::Irecv, nothing, last, group}});
              const WorkPtr sent = dist::isend(group, back, last);
              const WorkPtr got = dist::irecv(group, from_next, next);
              if (!reduced) reduced = group->all_reduce(sum);
              got->wait();
              reduced->wait();
              for (const WorkPtr& work : works)
                work->wait();
              sent->wait();
              all_are(theirs, last * 10 + round);
              all_are(from_next, next + 50);
              all_are(mine, own * 10 + round);
              all_are(sum, ranks);
              CHECK(got->is_completed());
            }
          }
        }))
      return;
#ifndef BRIGADE_REAL_CUDA
    // Empty messages are not passed to NCCL.
    CHECK(nccl_stand_in_messages() - before == static_cast<size_t>(ranks * 3 * 3 * 4));
#endif
  }
}

TEST_CASE("a message follows what is queued before it, and what is queued after its wait sees the values") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    for (int round = 0; round < 25; ++round) {
      const cuda::StreamGuard guard(cuda::Stream::create());
      const Tensor x = filled(group->rank() + 1, {5000}, kFloat32, device);
      for (int i = 0; i < 5; ++i)
        kernels::scale_inplace(x, 2);
      if (group->rank() == 0) {
        const WorkPtr work = dist::isend(group, x, 1);
        work->wait();
        kernels::fill(x, -1);  // runs after the receiver has the values
      } else {
        dist::recv(group, x, 0);
        kernels::scale_inplace(x, 0.5);
        all_are(x, 16);
      }
    }
  });
}

TEST_CASE("what a message sends lives until the device is done, whoever lets go of it; messages come in their order") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    std::vector<Tensor> got;
    std::vector<WorkPtr> works;
    for (int i = 0; i < 20; ++i) {
      if (group->rank() == 0) {
        works.push_back(dist::isend(group, filled(i, {700}, kFloat32, device), 1));
        const Tensor other = filled(-7, {700}, kFloat32, device);  // would reuse its memory
      } else {
        got.push_back(filled(-1, {700}, kFloat32, device));
        works.push_back(dist::irecv(group, got.back(), 0));
      }
    }
    for (size_t i = works.size(); i-- > 0;)
      works[i]->wait();
    for (size_t i = 0; i < got.size(); ++i)
      all_are(got[i], static_cast<double>(i));
  });
}

TEST_CASE("messages of devices go within a subgroup, by the ranks of it") {
  on_gpus(3, [](const ProcessGroupPtr& group, Device device) {
    const ProcessGroupPtr upper = dist::new_group(group, {1, 2});
    const Tensor x = filled(group->rank(), {4}, kFloat32, device);
    if (group->rank() == 1) dist::send(upper, x, 1);
    if (group->rank() == 2) dist::recv(upper, x, 0);
    all_are(x, group->rank() == 0 ? 0 : 1);
  });
}

TEST_CASE("tags, captures and groups that send no tensors of devices are refused in words") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    const int other = 1 - group->rank();
    const Tensor x = filled(1, {4}, kFloat32, device);
    CHECK_THROWS_WITH_AS(dist::isend(group, x, other, 3),
                         doctest::Contains("isend: NCCL has no tags: expected tag 0 for"), ValueError);
    CHECK_THROWS_WITH_AS(dist::irecv(group, x, other, 1), doctest::Contains("got 1; messages of two ranks arrive"),
                         ValueError);
    CHECK_THROWS_WITH_AS(dist::batch_isend_irecv({{P2POp::Isend, x, other, group}, {P2POp::Irecv, x, other, group, 2}}),
                         doctest::Contains("NCCL has no tags"), ValueError);
    const cuda::StreamGuard guard(cuda::Stream::create());
    cuda::Graph graph;
    CHECK_THROWS_WITH_AS(graph.capture([&] { dist::isend(group, x, other); }),
                         doctest::Contains("a message cannot be captured into a graph"), DeviceError);
  });
  dist::run_threads(2, [](const ProcessGroupPtr& group) {
    if (device_count(DeviceType::CUDA) == 0) return;
    const Tensor x = filled(1, {4}, kFloat32, Device(kCUDA, 0));
    CHECK_THROWS_WITH_AS(dist::isend(group, x, 1 - group->rank()),
                         doctest::Contains("messages of the backend threads go through the host's memory"),
                         DeviceError);
  });
}

TEST_CASE("messages whose ends differ are an error on both ranks, with both lines; the group and others go on") {
  struct Difference {
    int64_t numel;
    DType dtype;
    bool on_host;  // whether the receiver's tensor is on the CPU
    std::vector<std::string> told;
  };
  const Difference table[] = {{5, kFloat32, false, {"of 4 x float32", "of 5 x float32"}},
                              {4, kInt32, false, {"of 4 x float32", "of 4 x int32"}},
                              {4, kFloat32, true, {"\"tag 0, on a device\"", "\"tag 0\""}}};
  for (const Difference& each : table) {
    on_gpus(2, [&](const ProcessGroupPtr& group, Device device) {
      const bool sends = group->rank() == 0;
      const auto exchange = [&] {
        if (sends) {
          dist::send(group, filled(1, {4}, kFloat32, device), 1);
        } else {
          dist::recv(group, filled(1, {each.numel}, each.dtype, each.on_host ? Device() : device), 0);
        }
      };
      for (int again = 0; again < 2; ++again) {
        const std::string error = text_of<dist::CollectiveError>(exchange);
        for (const std::string& part : each.told)
          CHECK_MESSAGE(has(error, part), error);
        for (const char* const part : {"rank 0 in message", "rank 1 in message", "nccl_messages_test.cpp:"})
          CHECK_MESSAGE(has(error, part), error);
      }
      // A message in the other direction and a collective still work.
      const Tensor x = filled(group->rank(), {4}, kFloat32, device);
      if (sends) {
        dist::recv(group, x, 1);
      } else {
        dist::send(group, x, 0);
      }
      all_are(x, 1);
      group->all_reduce(x)->wait();
      all_are(x, 2);
    });
  }
}

TEST_CASE("a message of a device that the peer never posts ends at the timeout and names it") {
  on_gpus(
      2,
      [](const ProcessGroupPtr& group, Device device) {
        const Tensor x = filled(1, {4}, kFloat32, device);
        const bool sends = group->rank() == 0;
        const WorkPtr first = sends ? dist::isend(group, x, 1) : dist::irecv(group, x, 0);
        first->wait();
        if (!sends) {
          std::this_thread::sleep_for(2 * kShort);
          return;
        }
        const std::string error = text_of<TimeoutError>([&] { dist::send(group, x, 1); });
        for (const char* const part : {"rank 1", "message", "tag 0, on a device", "nccl_messages_test.cpp:"})
          CHECK_MESSAGE(has(error, part), error);
        const std::string never = text_of<TimeoutError>([&] { dist::recv(group, x, 1); });
        CHECK_MESSAGE(has(never, "message(from rank 1) of 4 x float32"), never);
        CHECK_MESSAGE(has(never, "Rank 1 did not come to"), never);
      },
      kShort);
}

TEST_CASE("who waits for a message of a rank that has left is informed") {
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    const Tensor x = filled(group->rank(), {4}, kFloat32, device);
    if (group->rank() == 1) {
      dist::send(group, x, 0);
      return;
    }
    dist::recv(group, x, 1);
    all_are(x, 1);
    const std::string error = text_of<PeerError>([&] { dist::recv(group, x, 1); });
    CHECK_MESSAGE(has(error, "rank 1"), error);
    CHECK_MESSAGE(has(error, "message"), error);
  });
}

TEST_CASE("a device that does not come to the end of a message is given up: a later message says so") {
  std::vector<std::string> errors(2);
  on_gpus(
      2,
      [&](const ProcessGroupPtr& group, Device device) {
        const Tensor x = filled(1, {4}, kFloat32, device);
        const bool sends = group->rank() == 0;
        const auto exchange = [&] { sends ? dist::send(group, x, 1) : dist::recv(group, x, 0); };
        exchange();
        std::jthread held;
        if (!sends) held = hold_stream(device, 10 * kShort);
        exchange();
        std::this_thread::sleep_for(4 * kShort);
        held.request_stop();
        errors[static_cast<size_t>(group->rank())] = text_of<DistError>(exchange);
        group->barrier();
      },
      kShort);
  if (device_count(DeviceType::CUDA) < 2) return;
  for (const std::string& error : errors)
    CHECK_MESSAGE(has(error, "did not come to its end within 1200 ms"), error);
}

TEST_CASE("where ranks cannot have a communicator, backend auto sends tensors of devices through the host's memory") {
  if (device_count(DeviceType::CUDA) == 0) return;
  dist::run_threads(2, [](const ProcessGroupPtr& control) {
    const ProcessGroupPtr group = dist::make_nccl_or_staged_group(control);
    const Device device(kCUDA, 0);  // shared by both ranks
    set_current_device(device);
    for (int round = 0; round < 3; ++round) {
      const Tensor x = filled(group->rank() + round, {1000}, kFloat32, device),
                   y = filled(-1, {1000}, kFloat32, device);
      const int other = 1 - group->rank();
      for (const WorkPtr& work :
           dist::batch_isend_irecv({{P2POp::Isend, x, other, group}, {P2POp::Irecv, y, other, group}}))
        work->wait();
      all_are(y, other + round);
    }
  });
}

}  // namespace brigade::test::nccl_messages_test
