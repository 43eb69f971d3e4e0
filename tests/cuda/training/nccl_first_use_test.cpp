// NCCL connects the ranks when a communicator is first used, and the call stays in progress until all ranks have
// joined. A rank that is missing from the first collective is reported like one missing from a later collective.
// Without GPUs, the stand-in for NCCL in evidence/stand_ins behaves in the same way.
#include "device_collectives.h"
#include "on_gpus.h"

#include <core/error_of.h>
#include <scoped_environment.h>

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/groups/coalescing_manager.h>
#include <brigade/dist/groups/nccl/communicator.h>
#include <dist/nets.h>

#include <atomic>
#include <barrier>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#ifndef BRIGADE_REAL_CUDA
extern "C" int nccl_stand_in_answer_in_progress(int times);
#endif

namespace brigade::test::nccl_first_use_test {
namespace nccl = brigade::dist::nccl;

namespace {

using dist::ProcessGroupPtr;

constexpr std::chrono::milliseconds kShort{500};

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// Creates the communicator without calling it: an empty collective is not passed to NCCL.
void make_communicator(const ProcessGroupPtr& group, Device device) {
  group->all_reduce(filled(0, {0}, kFloat32, device))->wait();
}

using Post = std::function<void(const ProcessGroupPtr& group, Device device)>;
void reduce_bucket(const ProcessGroupPtr& group, Device device) {
  group->all_reduce(filled(1, {4}, kFloat32, device), {.description = "bucket 3"})->wait();
}
void reduce_together(const ProcessGroupPtr& group, Device device) {
  dist::CoalescingManager together(group);
  group->all_reduce(filled(1, {4}, kFloat32, device), {.description = "bucket 3"});
  group->all_reduce(filled(1, {5}, kFloat32, device), {.description = "bucket 4"});
  together.end()->wait();
}

// The error on rank 0 if rank 1 never posts, for the first or the second use of the communicator.
std::string error_of_waiting(const Post& post, bool is_first) {
  return errors_of(
      2,
      [&](const ProcessGroupPtr& group, Device device) {
        make_communicator(group, device);
        if (!is_first) post(group, device);
        if (group->rank() == 1) {
          std::this_thread::sleep_for(4 * kShort);
          return;
        }
        post(group, device);
      },
      kShort)[0];
}

}  // namespace

TEST_CASE("a rank that does not come to the first collective is named as of a later one: collective, bucket and line") {
  if (!has_gpus_for(2)) return;
  struct Row {
    Post post;
    const char* words;
  };
  for (const Row& row :
       {Row{reduce_bucket, "4 x float32 \"bucket 3\""}, Row{reduce_together, "9 x float32 \"2 coalesced: 4, 5\""}}) {
    for (const bool is_first : {false, true}) {
      CAPTURE(is_first);
      const std::string error = error_of_waiting(row.post, is_first);
      for (const char* const part : {"Rank 1 did not come to", row.words, "nccl_first_use_test.cpp:"})
        CHECK_MESSAGE(has(error, part), error);
      CHECK_MESSAGE(!has(error, "in progress"), error);
    }
  }
}

TEST_CASE(
    "a rank that runs no backward after its construction is named as after steps: rank, bucket and the backward's line") {
  if (!has_gpus_for(2)) return;
  for (const int steps : {1, 0}) {
    CAPTURE(steps);
    const std::string error = errors_of(
        2,
        [&](const ProcessGroupPtr& group, Device device) {
          manual_seed(11);
          BranchingNet net;
          net->to(device);
          dist::DistributedDataParallel ddp(net, group);
          const Tensor x = numbers({6, 4}, kFloat32, 3).to(device);
          const auto step = [&] {
            const Tensor y = ddp(x);
            (y * y).mean().backward();
            net->zero_grad();
          };
          for (int i = 0; i < steps; ++i)
            step();
          if (group->rank() == 1) {
            std::this_thread::sleep_for(12 * kShort);
            return;
          }
          step();
        },
        3 * kShort)[0];
    for (const char* const part : {"all_reduce(avg)", "\"bucket 0 of DDP(BranchingNet)\"",
                                   "nccl_first_use_test.cpp:", "\nwhy: rank 1 was last in"})
      CHECK_MESSAGE(has(error, part), error);
    CHECK_MESSAGE(!has(error, "in progress"), error);
  }
}

TEST_CASE("the group says so from then on, and the peer hears it when it comes") {
  std::string again;
  const auto errors = errors_of(
      2,
      [&](const ProcessGroupPtr& group, Device device) {
        make_communicator(group, device);
        if (group->rank() == 1) std::this_thread::sleep_for(3 * kShort);
        try {
          reduce_bucket(group, device);
        } catch (const DistError&) {
          if (group->rank() == 0) again = text_of<TimeoutError>([&] { reduce_bucket(group, device); });
          throw;
        }
      },
      kShort);
  if (device_count(DeviceType::CUDA) < 2) return;
  CHECK_MESSAGE(has(errors[0], "Rank 1 did not come to"), errors[0]);
  CHECK(again == errors[0]);
  CHECK_MESSAGE(has(errors[1], "bucket 3"), errors[1]);
}

TEST_CASE("a rank that throws before its first collective takes its peers out of theirs, with its words") {
  const auto begin = std::chrono::steady_clock::now();
  const auto errors = errors_of(
      3,
      [](const ProcessGroupPtr& group, Device device) {
        make_communicator(group, device);
        if (group->rank() == 2) {
          group->note_failure("no more apples");
          throw ValueError("no more apples");
        }
        reduce_bucket(group, device);
      },
      std::chrono::minutes(2));
  if (device_count(DeviceType::CUDA) < 3) return;
  for (const size_t rank : {size_t{0}, size_t{1}})
    CHECK_MESSAGE(has(errors[rank], "no more apples"), errors[rank]);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(1));
}

TEST_CASE("ranks whose first collectives differ learn it, with both lines") {
  const auto errors = errors_of(2, [](const ProcessGroupPtr& group, Device device) {
    make_communicator(group, device);
    const Tensor x = filled(1, {8}, kFloat32, device);
    group->rank() == 0 ? group->all_reduce(x)->wait() : group->broadcast(x)->wait();
    all_are(x, 0);  // not reached
  });
  if (device_count(DeviceType::CUDA) < 2) return;
  for (const std::string& error : errors) {
    CHECK_MESSAGE(has(error, "all_reduce"), error);
    CHECK_MESSAGE(has(error, "broadcast"), error);
  }
}

TEST_CASE("a peer that is late to the first collective, but comes, is waited for") {
  on_gpus(
      2,
      [](const ProcessGroupPtr& group, Device device) {
        make_communicator(group, device);
        if (group->rank() == 1) std::this_thread::sleep_for(kShort);
        const Tensor x = filled(group->rank() + 1, {4}, kFloat32, device);
        group->all_reduce(x)->wait();
        all_are(x, 3);
      },
      10 * kShort);
}

TEST_CASE(
    "without comparison by the hosts, the error names the collective and its line, and says that the missing ranks are unknown") {
  if (!has_gpus_for(2)) return;
  const ScopedEnvironment unchecked{{"BRIGADE_COLLECTIVE_CHECK", "0"}};
  const std::string error = error_of_waiting(reduce_bucket, true);
  for (const char* const part :
       {"bucket 3", "nccl_first_use_test.cpp:", "not done within 500 ms", "it is not known which ranks have called it"})
    CHECK_MESSAGE(has(error, part), error);
}

#ifndef BRIGADE_REAL_CUDA

TEST_CASE("an event that was recorded after a collective is reached after it, however late NCCL has queued it") {
  const int before = nccl_stand_in_answer_in_progress(1000);
  on_gpus(2, [](const ProcessGroupPtr& group, Device device) {
    for (int round = 0; round < 3; ++round) {
      const Tensor x = filled(group->rank() + 1, {4}, kFloat32, device);
      group->all_reduce(x)->wait();
      all_are(x, 3);
    }
  });
  nccl_stand_in_answer_in_progress(before);
}

// Runs two ranks that call only NCCL. `reduce` all-reduces on the communicator of the rank.
using Reduce = std::function<void(const nccl::Communicator::UntilPeersCome& until_peers_come)>;
void on_pair(const std::function<void(int rank, nccl::Communicator& communicator, const Reduce& reduce)>& body) {
  nccl::UniqueId id;
  REQUIRE(nccl::library().get_unique_id(&id) == nccl::Result::Success);
  std::vector<std::thread> threads;
  std::string errors[2];
  const auto run = [&](int rank) {
    const Device device(kCUDA, rank);
    set_current_device(device);
    nccl::Communicator communicator(nccl::library(), id, rank, 2, device, std::chrono::seconds(30), rank);
    const cuda::Stream stream = cuda::Stream::create();
    const cuda::StreamGuard guard(stream);
    const Tensor x = filled(1, {4}, kFloat32, device);
    body(rank, communicator, [&](const nccl::Communicator::UntilPeersCome& until_peers_come) {
      const auto all_reduce = [&](nccl::Comm comm) {
        return nccl::library().all_reduce(x.raw_data(), x.raw_data(), 4, nccl::DataType::Float32, nccl::RedOp::Sum,
                                          comm, stream.get());
      };
      communicator.call("ncclAllReduce", all_reduce, until_peers_come);
    });
    stream.synchronize();
  };
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] { errors[rank] = text_of<Error>([&] { run(rank); }); });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& error : errors)
    CHECK(error == "nothing");
}

TEST_CASE("a thread asks NCCL again at once, then gives way, and sleeps only where it takes long") {
  struct Row {
    int answers;  // polls that report being in progress
    uint64_t spins, yields, sleeps;
  };
  const Row table[] = {{0, 0, 0, 0},       {1, 1, 0, 0},       {50, 50, 0, 0},     {200, 200, 0, 0},
                       {300, 200, 100, 0}, {400, 200, 200, 0}, {405, 200, 200, 5}, {7, 7, 0, 0}};
  const int before = nccl_stand_in_answer_in_progress(0);
  std::barrier both(2);
  std::atomic<int> waited{0};
  on_pair([&](int rank, nccl::Communicator& communicator, const Reduce& reduce) {
    // A rank that throws leaves the barrier.
    struct Leaving {
      std::barrier<>& both;
      ~Leaving() { both.arrive_and_drop(); }
    } leaving{both};
    reduce({});  // connects
    for (const Row& row : table) {
      both.arrive_and_wait();
      if (rank == 0) nccl_stand_in_answer_in_progress(row.answers);
      both.arrive_and_wait();
      const nccl::Communicator::Pauses start = communicator.pauses();
      reduce([&] { ++waited; });
      const nccl::Communicator::Pauses end = communicator.pauses();
      CAPTURE(row.answers);
      CHECK(end.spins - start.spins == row.spins);
      CHECK(end.yields - start.yields == row.yields);
      CHECK(end.sleeps - start.sleeps == row.sleeps);
    }
  });
  CHECK(waited == 2 * 2);  // each rank: before it would sleep, and when it did
  nccl_stand_in_answer_in_progress(before);
}

TEST_CASE("before a thread sleeps it waits for the peers as the host knows them, once") {
  std::atomic<int> waited{0};
  on_pair([&](int rank, nccl::Communicator&, const Reduce& reduce) {
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (rank == 1 && waited == 0 && std::chrono::steady_clock::now() < patience)
      std::this_thread::yield();
    reduce([&] { ++waited; });
  });
  CHECK(waited >= 1);
  CHECK(waited <= 2);
}

#endif

}  // namespace brigade::test::nccl_first_use_test
