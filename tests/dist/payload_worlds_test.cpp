// The payload by which ranks decide, computed for up to 1,024 ranks without running any: every rank reads the same from
// the averages, and what it reads is right.
//
// BRIGADE_ALL_WORLDS=1: every size from 2 to 1,024; else a choice of them.
#include <brigade/core/factory.h>
#include <brigade/dist/buckets/payload.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/groups/arithmetic.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

namespace brigade::test::payload_worlds_test {
// A group of any size that sends nothing.
class Paper final : public dist::ProcessGroup {
 public:
  Paper(int rank, int size) : ProcessGroup(rank, size, std::chrono::seconds(1)) {}
  const char* backend() const noexcept override { return "paper"; }
  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override { return empty({numel}, {dtype}); }
  void abort(std::string_view) override {}

 protected:
  dist::WorkPtr do_all_reduce(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_broadcast(const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_all_gather(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override { return nullptr; }
  dist::WorkPtr do_reduce_scatter(const Tensor&, const Tensor&, const dist::CollectiveOptions&) override {
    return nullptr;
  }
  dist::WorkPtr do_barrier(const dist::CollectiveOptions&) override { return nullptr; }
};

using Kind = dist::WordKind;
// Those of the meter, as an example, then statistics.
constexpr Kind kRegistered[] = {Kind::Truth,  Kind::Number, Kind::Real,    Kind::Real,   Kind::Real,
                                Kind::Number, Kind::Number, Kind::Measure, Kind::Measure};
constexpr size_t kTruth = 0, kSilent = 4, kMeasures[] = {7, 8};

// Payloads of all ranks of a world, whose tails are averaged as the host groups do it.
class World {
 public:
  World(DType dtype, int ranks) : dtype_(dtype) {
    const dist::BucketLayout layout{.dtype = dtype, .parameters = {0, 1}, .offsets = {0, 1}, .gradient_numel = 2};
    for (int r = 0; r < ranks; ++r) {
      Paper group(r, ranks);
      payloads_.emplace_back(group, layout, kRegistered);
    }
  }
  void fill(const std::function<void(dist::Payload&, int rank)>& fill) {
    std::vector<void*> tails;
    for (int r = 0; r < size(); ++r) {
      fill(payloads_[static_cast<size_t>(r)], r);
      tails.push_back(payloads_[static_cast<size_t>(r)].tail().raw_data());
    }
    dist::reduce_elements(tails, tails, dtype_, dist::ReduceOp::Avg, 0, payloads_.front().tail().numel());
    const size_t bytes = payloads_.front().tail().nbytes();
    REQUIRE(std::ranges::all_of(tails, [&](const void* each) { return std::memcmp(each, tails.front(), bytes) == 0; }));
  }
  int size() const { return static_cast<int>(payloads_.size()); }
  // What rank 0 reads. Every rank reads the same, since fill() checks that all hold the same bytes.
  template <class T>
  T read(const std::function<T(const dist::Payload&)>& read) const {
    return read(payloads_.front());
  }

 private:
  DType dtype_;
  std::vector<dist::Payload> payloads_;
};

constexpr DType kFloatingTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16};
constexpr dist::Word kTruths[] = {dist::Word::Present, dist::Word::Failed, dist::Word::Joined, dist::Word::Changed};
// That of the reducer, and registered ones.
struct Number {
  std::function<void(dist::Payload&, uint64_t)> set;
  std::function<bool(const dist::Payload&)> all_equal;
};
Number number_of(dist::Word word) {
  return {[=](dist::Payload& payload, uint64_t value) { payload.set_number(word, value); },
          [=](const dist::Payload& payload) { return payload.all_equal(word); }};
}
Number number_of(size_t registered) {
  return {[=](dist::Payload& payload, uint64_t value) { payload.set_word(registered, value); },
          [=](const dist::Payload& payload) { return payload.read_word(registered).all_equal; }};
}
const Number kNumbers[] = {number_of(dist::Word::Round), number_of(size_t{1}), number_of(size_t{5}),
                           number_of(size_t{6})};

std::vector<int> worlds() {
  std::vector<int> sizes;
  if (std::getenv("BRIGADE_ALL_WORLDS")) {
    for (int n = 2; n <= 1024; ++n)
      sizes.push_back(n);
    return sizes;
  }
  for (int n = 2; n <= 18; ++n)
    sizes.push_back(n);
  // Sizes around those where another number of counts fits into an element.
  for (const int n : {27, 28, 32, 60, 64, 100, 127, 129, 255, 256, 257, 513, 1000, 1024})
    sizes.push_back(n);
  return sizes;
}

// The ranks that differ: `count` ranks from `first` on.
struct Odd {
  int first, count;
  bool holds(int rank) const { return rank >= first && rank < first + count; }
};
std::vector<Odd> odd_ranks(int n) { return {{0, 0}, {0, 1}, {n - 1, 1}, {n / 2, 1}, {0, n / 2}, {1, n - 1}, {0, n}}; }

TEST_CASE("flags and truths are counted exactly among 2 to 1,024 ranks, in every dtype") {
  for (const DType dtype : kFloatingTypes) {
    const std::string type = name(dtype);
    CAPTURE(type);
    for (const int n : worlds()) {
      CAPTURE(n);
      World world(dtype, n);
      for (const Odd& odd : odd_ranks(n)) {
        CAPTURE(odd.count);
        world.fill([&](dist::Payload& payload, int rank) {
          payload.set_flag(0, odd.holds(rank));
          payload.set_flag(1, !odd.holds(rank));
          for (size_t i = 0; i < std::size(kTruths); ++i)
            payload.set(kTruths[i], odd.holds(rank) == (i % 2 == 0));
          payload.set_word(kTruth, odd.holds(rank) ? 1 : 0);
        });
        CHECK(world.read<int>([](const dist::Payload& payload) { return payload.flag_count(0); }) == odd.count);
        CHECK(world.read<int>([](const dist::Payload& payload) { return payload.flag_count(1); }) == n - odd.count);
        CHECK(world.read<int>([](const dist::Payload& payload) { return payload.read_word(kTruth).count; }) ==
              odd.count);
        for (size_t i = 0; i < std::size(kTruths); ++i) {
          const int expected = i % 2 == 0 ? odd.count : n - odd.count;
          CHECK(world.read<int>([&](const dist::Payload& payload) { return payload.count(kTruths[i]); }) == expected);
        }
      }
    }
  }
}

TEST_CASE("a number that one of 2 to 1,024 ranks holds otherwise is seen by all of them or by none, in every dtype") {
  struct Row {
    uint64_t common, odd;
  };
  // Micro-batches: the last two rows are a training of 2,046 of them, and a number that has wrapped around.
  const Row rows[] = {{1, 1}, {6, 6}, {7, 6}, {0, 1}, {1023, 1024}, {2047, 2047}, {2046, 2045}, {2048 + 5, 5}};
  for (const DType dtype : kFloatingTypes) {
    const std::string type = name(dtype);
    CAPTURE(type);
    for (const int n : worlds()) {
      CAPTURE(n);
      World world(dtype, n);
      size_t next = 0;
      for (const Odd& odd : odd_ranks(n)) {
        for (const Row& row : rows) {
          // One word takes the numbers of this row, the others are equal on all ranks.
          const Number& word = kNumbers[next++ % std::size(kNumbers)];
          CAPTURE(row.common);
          CAPTURE(row.odd);
          CAPTURE(odd.count);
          world.fill([&](dist::Payload& payload, int rank) {
            for (const Number& each : kNumbers)
              each.set(payload, &each == &word && odd.holds(rank) ? row.odd : row.common);
          });
          const bool differ = row.common % 2048 != row.odd % 2048 && odd.count % n != 0;
          for (const Number& each : kNumbers)
            CHECK(world.read<bool>(each.all_equal) == !(&each == &word && differ));
        }
      }
    }
  }
}

TEST_CASE("times, batches and what is not known give all of 2 to 1,024 ranks one answer, in every dtype") {
  for (const DType dtype : kFloatingTypes) {
    const std::string type = name(dtype);
    CAPTURE(type);
    for (const int n : worlds()) {
      CAPTURE(n);
      World world(dtype, n);
      for (const double last : {300.0, 600.0}) {
        world.fill([&](dist::Payload& payload, int rank) {
          for (const size_t index : kMeasures)
            payload.set_word(index, static_cast<uint64_t>(rank == n - 1 ? last : 300));
          payload.set_real(kSilent, rank == n - 1 && last > 300 ? 1 : 0);
        });
        const double mean = 300 + (last - 300) / n;
        const double variance = (last - 300) * (last - 300) * (n - 1) / n / n;
        for (const size_t index : kMeasures) {
          const auto found =
              world.read<dist::WordReading>([&](const auto& payload) { return payload.read_word(index); });
          CHECK(found.mean == doctest::Approx(mean).epsilon(1e-6));
          // Float32 keeps 24 bits of a square.
          CHECK(std::abs(found.variance - variance) < (dtype == kFloat32 ? 1e-6 * mean * mean : 1e-6));
          CHECK(dist::may_have_slow_rank(found.mean, found.variance, n) == (last > 300));
        }
        CHECK((world.read<double>([](const auto& payload) { return payload.read_word(kSilent).mean; }) > 0) ==
              (last > 300));
      }
    }
  }
}

}  // namespace brigade::test::payload_worlds_test
