// An all_reduce of many elements that the peers cannot reach: it runs in pieces, with the bits of one in memory of the
// group.
#include "processes.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/dist/groups/shm/staged_reduction.h>
#include <brigade/dist/groups/work.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

namespace brigade::test::staged_reduction_test {
using dist::shm::StagedReduction;

// Small numbers that differ by rank and position, converted to the dtype of `tensor`.
void fill(const Tensor& tensor, int rank, int64_t salt) {
  visit_dtype(tensor.dtype(), [&]<class T>() {
    T* values = static_cast<T*>(tensor.raw_data());
    for (int64_t i = 0; i < tensor.numel(); ++i)
      values[i] = static_cast<T>(static_cast<float>((i * 7 + i / 1021 + salt) % 61 + rank * 3) * 0.25F);
  });
}

int64_t elements(DType dtype, size_t bytes_above) {
  return static_cast<int64_t>((StagedReduction::kFrom + bytes_above) / itemsize(dtype)) + 3;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.numel() == b.numel() && std::memcmp(a.raw_data(), b.raw_data(), a.nbytes()) == 0;
}

// Sums in memory of the group are the reference: other tests compare those with numbers.
std::string compare(const dist::ProcessGroupPtr& group, DType dtype, dist::ReduceOp op, bool reachable,
                    size_t bytes_above) {
  const int64_t count = elements(dtype, bytes_above);
  const Tensor expected = group->allocate(count, dtype);
  fill(expected, group->rank(), 0);
  group->all_reduce(expected, {.op = op})->wait();
  const Tensor tensor = reachable ? group->allocate(count, dtype) : empty({count}, dtype);
  fill(tensor, group->rank(), 0);
  group->all_reduce(tensor, {.op = op})->wait();
  // A peer that still wrote would be seen here.
  group->barrier();
  return same_bits(tensor, expected) ? "same" : "other bits";
}

void check_all(int ranks, const Body& body) {
  const auto results = run_ranks("shm", ranks, body);
  for (const Rank& rank : results) {
    CHECK(rank.error == "");
    CHECK(rank.text == "");
    CHECK(rank.result == "same");
  }
}

// A signal from one process to another, without using the group.
class Signal {
 public:
  Signal() { REQUIRE(pipe2(ends_, O_CLOEXEC) == 0); }
  ~Signal() {
    close(ends_[0]);
    close(ends_[1]);
  }
  Signal(const Signal&) = delete;
  Signal& operator=(const Signal&) = delete;

  void give() const {
    if (write(ends_[1], "x", 1) != 1) throw std::runtime_error("a signal cannot be given");
  }
  void await() const {
    pollfd entry{ends_[0], POLLIN, 0};
    if (poll(&entry, 1, 20000) != 1) throw std::runtime_error("no signal in 20 s");
  }

 private:
  int ends_[2];
};

// Two ranks that run at the same time may complete in the call itself: here each runs alone, as far as it gets without
// the other.
struct Turns {
  Signal rank0_began, rank1_began;

  dist::WorkPtr begin(const dist::ProcessGroupPtr& group, const Tensor& tensor) const {
    if (group->rank() == 1) rank0_began.await();
    dist::WorkPtr work = group->all_reduce(tensor, {});
    // The call does what it can do at once, which is not everything.
    if (work->is_completed()) throw std::runtime_error("completed by one rank alone");
    (group->rank() == 0 ? rank0_began : rank1_began).give();
    if (group->rank() == 0) rank1_began.await();
    return work;
  }
};

TEST_CASE("a staged all_reduce in pieces has the bits of one in memory of the group") {
  for (const int ranks : {2, 3, 4}) {
    for (const DType dtype : {DType::Float32, DType::Float16, DType::BFloat16, DType::Int64}) {
      CAPTURE(ranks);
      CAPTURE(name(dtype));
      const dist::ReduceOp op = dtype == DType::Int64 ? dist::ReduceOp::Max : dist::ReduceOp::Avg;
      check_all(ranks, [&](const dist::ProcessGroupPtr& group) { return compare(group, dtype, op, false, 1 << 20); });
    }
  }
}

// On any machine: groups do not use pieces where ranks outnumber the processors.
TEST_CASE("ranks that go on in any order come to the sums, whoever of them stages") {
  RandomGenerator random(7);
  const auto pick = [&](int64_t below) { return randint(0, below, {1}, {kInt64}, &random).item<int64_t>(); };
  const int64_t count = 11 * static_cast<int64_t>(StagedReduction::kPieceBytes / sizeof(float)) + 5;
  for (const int ranks : {2, 3, 4}) {
    for (int staging = 1; staging < 1 << ranks; ++staging) {
      CAPTURE(ranks);
      CAPTURE(staging);
      const auto control = std::make_unique<dist::shm::Control>();
      std::vector<Tensor> data, slots;
      std::vector<StagedReduction::Source> sources;
      for (int r = 0; r < ranks; ++r) {
        data.push_back(empty({count}));
        fill(data.back(), r, 0);
        slots.push_back(empty({static_cast<int64_t>(StagedReduction::kRoomBytes / sizeof(float))}));
        const bool stages = (staging >> r & 1) != 0;
        sources.push_back({static_cast<char*>((stages ? slots : data).back().raw_data()), stages});
      }
      Tensor expected = data[0].clone();
      for (int r = 1; r < ranks; ++r)
        expected = expected + data[static_cast<size_t>(r)];
      const uint32_t first = 4294967290U;  // the counters wrap around
      for (int r = 0; r < ranks; ++r)
        control->ranks[r].staged = control->ranks[r].reduced = first;
      std::deque<StagedReduction> each;
      for (int r = 0; r < ranks; ++r)
        each.emplace_back(*control, r, sources, data[static_cast<size_t>(r)], dist::ReduceOp::Sum, first);
      int idle = 0;
      while (idle < 1000 && !std::ranges::all_of(each, &StagedReduction::done))
        idle = each[static_cast<size_t>(pick(ranks))].advance() ? 0 : idle + 1;
      for (const Tensor& sum : data)
        CHECK(same_bits(sum, expected));
    }
  }
}

TEST_CASE("the last piece may be of one element, and all pieces full") {
  check_all(2, [](const dist::ProcessGroupPtr& group) {
    const auto per_piece = static_cast<int64_t>(StagedReduction::kPieceBytes / sizeof(float));
    const auto from = static_cast<int64_t>(StagedReduction::kFrom / sizeof(float));
    for (const int64_t count : {from + 1, from + per_piece, from + per_piece + 1}) {
      const Tensor tensor = full({count}, group->rank() + 1.0);
      group->all_reduce(tensor, {})->wait();
      if (!same_bits(tensor, full({count}, 3.0))) return "other numbers for " + std::to_string(count);
    }
    return std::string("same");
  });
}

TEST_CASE("some ranks stage and others hold their elements in memory of the group") {
  for (const int ranks : {2, 3, 4}) {
    for (int staging = 0; staging < ranks; ++staging) {
      CAPTURE(ranks);
      CAPTURE(staging);
      check_all(ranks, [&](const dist::ProcessGroupPtr& group) {
        return compare(group, DType::Float32, dist::ReduceOp::Sum, group->rank() != staging, 3 << 20);
      });
    }
  }
}

TEST_CASE("several at once, small ones between them, waited for in another order") {
  check_all(3, [](const dist::ProcessGroupPtr& group) {
    std::vector<Tensor> tensors, expected;
    std::vector<dist::WorkPtr> works;
    for (int i = 0; i < 6; ++i) {
      const int64_t count = i % 2 == 0 ? elements(DType::Float32, static_cast<size_t>(i) << 18) : 1000;
      expected.push_back(group->allocate(count, DType::Float32));
      fill(expected.back(), group->rank(), i);
      group->all_reduce(expected.back(), {})->wait();
      tensors.push_back(empty({count}));
      fill(tensors.back(), group->rank(), i);
    }
    for (const Tensor& tensor : tensors)
      works.push_back(group->all_reduce(tensor, {}));
    for (const size_t i : {size_t{3}, size_t{5}, size_t{0}, size_t{1}, size_t{4}, size_t{2}}) {
      // One rank comes late, so that the others wait for pieces.
      if (group->rank() == 1 && i == 5) std::this_thread::sleep_for(std::chrono::milliseconds(30));
      works[i]->wait();
      if (!same_bits(tensors[i], expected[i])) return "other bits in " + std::to_string(i);
    }
    return std::string("same");
  });
}

TEST_CASE("a rank that leaves between the pieces is named, and nobody hangs") {
  const Turns turns;
  const auto ranks = run_ranks("shm", 2, [&](const dist::ProcessGroupPtr& group) {
    const Tensor tensor = ones({elements(DType::Float32, 8 << 20)});
    const dist::WorkPtr work = turns.begin(group, tensor);
    if (group->rank() == 1) return std::string("left");
    work->wait();
    return std::string("done");
  });
  CHECK(ranks[1].error == "");
  CHECK(ranks[1].result == "left");
  CHECK(ranks[0].error == "PeerError");
  CHECK_MESSAGE(ranks[0].text.find("Rank 1 left the group") != std::string::npos, ranks[0].text);
  CHECK(!ranks[0].hung);
  CHECK(ranks[0].seconds < 50);  // long before the time-out
}

TEST_CASE("a rank that stands still between the pieces is named after the time-out") {
  const Turns turns;
  const test::SharedCount gave_up;
  const auto ranks = run_ranks(
      "shm", 2,
      [&](const dist::ProcessGroupPtr& group) {
        const Tensor tensor = ones({elements(DType::Float32, 8 << 20)});
        const dist::WorkPtr work = turns.begin(group, tensor);
        const test::SharedCount::AddAtEnd adds{gave_up};
        if (group->rank() == 1 && !gave_up.wait_for(1)) return std::string("nobody gave up");
        work->wait();
        return std::string("done");
      },
      std::chrono::milliseconds(1500));
  CHECK(ranks[0].error == "TimeoutError");
  CHECK_MESSAGE(ranks[0].text.find("rank 1") != std::string::npos, ranks[0].text);
}

}  // namespace brigade::test::staged_reduction_test
