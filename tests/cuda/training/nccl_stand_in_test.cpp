// The stand-in for NCCL enforces NCCL's rules for groups and messages: calls that would hang in NCCL are never ready,
// calls that NCCL rejects are rejected.
#ifndef BRIGADE_REAL_CUDA

#include <brigade/dist/groups/nccl/library.h>

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <simt/error.h>
#include <simt/options.h>
#include <simt/runtime.h>

#include <atomic>
#include <barrier>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

extern "C" size_t nccl_stand_in_commands();
extern "C" int nccl_stand_in_answer_in_progress(int times);

namespace brigade::test::nccl_stand_in_test {
namespace {

using namespace brigade::dist::nccl;

constexpr int kRanks = 2;
constexpr size_t kCount = 8;

// The state of one rank.
struct Rank {
  int rank = 0;
  int peer = 0;
  Comm comm = nullptr;
  cudaStream_t stream = nullptr;
  float* sent = nullptr;  // 2 * kCount elements of value rank + 1
  float* got = nullptr;

  Result asked() const {
    Result result = Result::InternalError;
    library().comm_get_async_error(comm, &result);
    return result;
  }
  Result settled(Result begun) const {
    while (begun == Result::InProgress)
      begun = asked();
    return begun;
  }
  Result send(size_t count = kCount) const {
    return settled(library().send(sent, count, DataType::Float32, peer, comm, stream));
  }
  Result receive(size_t count = kCount, DataType type = DataType::Float32) const {
    return settled(library().recv(got, count, type, peer, comm, stream));
  }
  Result begin_to_reduce(size_t count, DataType type = DataType::Float32, size_t from = 0) const {
    return library().all_reduce(sent + from, got + from, count, type, RedOp::Sum, comm, stream);
  }
  Result reduce(size_t count, DataType type = DataType::Float32, size_t from = 0) const {
    return settled(begin_to_reduce(count, type, from));
  }
  void together(const std::function<void()>& calls) const {
    CHECK(library().group_start() == Result::Success);
    calls();
    const Result ended = library().group_end();
    CHECK(ended == Result::InProgress);
    CHECK(settled(ended) == Result::Success);
  }
  // Connects for collectives and for messages in both directions, with a single command.
  void connect() const {
    together([&] {
      reduce(1);
      send(1);
      receive(1);
    });
  }
  std::vector<float> received() const {
    std::vector<float> values(kCount);
    cudaMemcpyAsync(values.data(), got, kCount * sizeof(float), cudaMemcpyDeviceToHost, stream);
    cudaStreamSynchronize(stream);
    return values;
  }
};

// The errors thrown when each rank waits for its stream after `calls`; "" for none. Connects the ranks first unless
// `is_connected` is false.
std::vector<std::string> run(const std::function<void(Rank&)>& calls, const std::function<void(Rank&)>& after = {},
                             bool is_connected = true) {
  std::vector<std::string> errors(kRanks);
  std::barrier both(kRanks);
  UniqueId id;
  REQUIRE(library().get_unique_id(&id) == Result::Success);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < kRanks; ++rank) {
    threads.emplace_back([&, rank] {
      Rank own{rank, 1 - rank};
      cudaSetDevice(rank);
      Config config;
      library().comm_init_rank_config(&own.comm, kRanks, id, rank, &config);
      for (Result result = Result::InProgress; result == Result::InProgress;)
        library().comm_get_async_error(own.comm, &result);
      cudaStreamCreateWithFlags(&own.stream, cudaStreamNonBlocking);
      cudaMalloc(reinterpret_cast<void**>(&own.sent), 2 * kCount * sizeof(float));
      cudaMalloc(reinterpret_cast<void**>(&own.got), 2 * kCount * sizeof(float));
      const std::vector<float> values(2 * kCount, static_cast<float>(rank + 1));
      cudaMemcpy(own.sent, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice);
      if (is_connected) own.connect();
      both.arrive_and_wait();
      if (is_connected) cudaStreamSynchronize(own.stream);
      try {
        calls(own);
        cudaStreamSynchronize(own.stream);
        if (after) after(own);
      } catch (const simt::Error& error) {
        errors[static_cast<size_t>(rank)] = error.what();
        cudaGetLastError();
      }
      library().comm_abort(own.comm);
      cudaDeviceSynchronize();
      cudaFree(own.sent);
      cudaFree(own.got);
      cudaStreamDestroy(own.stream);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  simt::discard_queued();
  return errors;
}

void never_ready(const char* what, const std::function<void(Rank&)>& calls) {
  CAPTURE(what);
  const simt::ScopedOptions impatient({.patience = std::chrono::milliseconds(100)});
  for (const std::string& error : run(calls))
    CHECK_MESSAGE(error.find("streams stalled") != std::string::npos, error);
}

}  // namespace

TEST_CASE("ranks that send to each other and receive in a group exchange, in any order, by one command each") {
  const size_t before = nccl_stand_in_commands();
  const auto errors = run(
      [](Rank& own) {
        own.together([&] {
          if (own.rank == 0) own.receive();
          own.send();
          if (own.rank == 1) own.receive();
        });
      },
      [](Rank& own) { CHECK(own.received() == std::vector<float>(kCount, static_cast<float>(own.peer + 1))); });
  CHECK(errors == std::vector<std::string>(kRanks));
  CHECK(nccl_stand_in_commands() - before == 2 * kRanks);  // one of them connects
}

TEST_CASE("collectives and messages go in one group, groups inside of groups are one with the outer one") {
  const size_t before = nccl_stand_in_commands();
  const auto errors = run(
      [](Rank& own) {
        own.together([&] {
          library().group_start();
          library().all_reduce(own.sent, own.sent, kCount, DataType::Float32, RedOp::Max, own.comm, own.stream);
          CHECK(library().group_end() == Result::Success);
          if (own.rank == 0) library().send(own.sent + kCount, kCount, DataType::Float32, 1, own.comm, own.stream);
          if (own.rank == 1) own.receive();
        });
      },
      [](Rank& own) {
        if (own.rank == 1) CHECK(own.received() == std::vector<float>(kCount, 1));
        std::vector<float> largest(kCount);
        cudaMemcpy(largest.data(), own.sent, kCount * sizeof(float), cudaMemcpyDeviceToHost);
        CHECK(largest == std::vector<float>(kCount, 2));
      });
  CHECK(errors == std::vector<std::string>(kRanks));
  CHECK(nccl_stand_in_commands() - before == 2 * kRanks);
}

TEST_CASE("what would hang over NCCL is never ready") {
  never_ready("both send before they receive, without a group", [](Rank& own) {
    own.send();
    own.receive();
  });
  never_ready("sizes of a message", [](Rank& own) { own.rank == 0 ? own.send(8) : own.receive(4); });
  never_ready("dtypes of a message", [](Rank& own) { own.rank == 0 ? own.send(8) : own.receive(8, DataType::Int32); });
  never_ready("the number of parts", [](Rank& own) {
    own.together([&] {
      own.reduce(2);
      if (own.rank == 0) own.reduce(2, DataType::Float32, 4);
    });
  });
  never_ready("the size of a part", [](Rank& own) {
    own.together([&] {
      own.reduce(2);
      own.reduce(own.rank == 0 ? 3 : 4, DataType::Float32, 4);
    });
  });
  never_ready("the dtype of a part", [](Rank& own) {
    own.together([&] {
      own.reduce(2);
      own.reduce(2, own.rank == 0 ? DataType::Float32 : DataType::Int32, 4);
    });
  });
  never_ready("the place of a part", [](Rank& own) {
    own.together([&] {
      own.reduce(own.rank == 0 ? 2 : 3);
      own.reduce(own.rank == 0 ? 3 : 2, DataType::Float32, 4);
    });
  });
  never_ready("a group beside single calls", [](Rank& own) {
    const auto both = [&] {
      own.reduce(2);
      own.reduce(2, DataType::Float32, 4);
    };
    own.rank == 0 ? own.together(both) : both();
  });
}

TEST_CASE("a group is refused as a whole, and its end needs a beginning") {
  CHECK(library().group_end() == Result::InvalidUsage);
  const size_t before = nccl_stand_in_commands();
  const auto errors = run([](Rank& own) {
    CHECK(library().group_start() == Result::Success);
    CHECK(own.reduce(2) == Result::Success);
    CHECK(library().send(own.sent, 2, DataType::Float32, 2, own.comm, own.stream) == Result::InvalidArgument);
    CHECK(library().group_end() == Result::InvalidArgument);
    // Later calls are not part of that group.
    CHECK(own.reduce(2) == Result::Success);
  });
  CHECK(errors == std::vector<std::string>(kRanks));
  CHECK(nccl_stand_in_commands() - before == 2 * kRanks);
}

TEST_CASE("at its first use a communicator is in progress until all have come, and takes no other call") {
  std::atomic<bool> is_awaited = false;
  for (const bool is_message : {false, true}) {
    is_awaited = false;
    const auto errors = run(
        [&](Rank& own) {
          while (own.rank == 1 && !is_awaited)
            std::this_thread::yield();
          const auto begin = [&] {
            if (!is_message) return own.begin_to_reduce(kCount);
            return own.rank == 0 ? library().send(own.sent, kCount, DataType::Float32, 1, own.comm, own.stream)
                                 : library().recv(own.got, kCount, DataType::Float32, 0, own.comm, own.stream);
          };
          const Result begun = begin();
          CHECK(begun == Result::InProgress);
          if (own.rank == 0) {
            for (int i = 0; i < 100; ++i)
              CHECK(own.asked() == Result::InProgress);
            CHECK(begin() == Result::InvalidArgument);
            is_awaited = true;
          }
          CHECK(own.settled(begun) == Result::Success);
        },
        [&](Rank& own) {
          if (own.rank == 1 || !is_message)
            CHECK(own.received() == std::vector<float>(kCount, is_message ? 1.0F : 3.0F));
        },
        false);
    CHECK(errors == std::vector<std::string>(kRanks));
  }
}

TEST_CASE("later a call is in progress for some answers, whether the peer has come or not, and is queued then") {
  const int before = nccl_stand_in_answer_in_progress(5);
  std::atomic<bool> is_queued = false;
  const auto errors = run([&](Rank& own) {
    while (own.rank == 1 && !is_queued)
      std::this_thread::yield();
    const size_t queued = nccl_stand_in_commands();
    CHECK(own.begin_to_reduce(kCount) == Result::InProgress);
    for (int i = 0; i < 5; ++i)
      CHECK(own.asked() == Result::InProgress);
    CHECK(nccl_stand_in_commands() == queued);
    CHECK(own.asked() == Result::Success);
    CHECK(nccl_stand_in_commands() == queued + 1);
    is_queued = true;
  });
  CHECK(errors == std::vector<std::string>(kRanks));
  nccl_stand_in_answer_in_progress(before);
}

TEST_CASE("a message that is written while it is sent is found") {
  std::atomic<bool> is_written = false;
  const auto errors = run([&](Rank& own) {
    if (own.rank == 1) {
      while (!is_written)
        std::this_thread::yield();
      own.receive();
      return;
    }
    own.send();
    for (int i = 0; i < 64; ++i)  // one of the queries checks readiness, which starts the message
      CHECK(cudaStreamQuery(own.stream) == cudaErrorNotReady);
    cudaGetLastError();
    cudaMemset(own.sent, 0, kCount * sizeof(float));
    cudaStreamSynchronize(nullptr);
    is_written = true;
  });
  CHECK_MESSAGE(
      (errors[0] + errors[1]).find("rank 0 wrote what it sends while the message was under way") != std::string::npos,
      errors[0], " / ", errors[1]);
}

}  // namespace brigade::test::nccl_stand_in_test

#endif
