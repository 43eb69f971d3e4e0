// The values that `brigade bench collectives` expects are what groups compute, for every dtype and operation, on many
// ranks.
#include <brigade/lab/bench/collectives/collective.h>

#include "program.h"

#include <brigade/core/factory.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <atomic>
#include <cstring>
#include <vector>

namespace brigade::test::collective_values_test {

using dist::ReduceOp;

constexpr DType kDTypes[] = {kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8, kBool};
constexpr int64_t kCount = 197;

struct Case {
  DType dtype;
  ReduceOp op;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const DType dtype : kDTypes) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Avg, ReduceOp::Max, ReduceOp::Min}) {
      if (op != ReduceOp::Avg || is_floating_point(dtype)) all.push_back({dtype, op});
    }
  }
  return all;
}

// The number of wrong elements over all ranks for each case; `rank` contributes the values of rank `stand_in(rank)`.
template <class F>
std::vector<int64_t> wrong_on(int ranks, const std::vector<Case>& all, F stand_in) {
  std::vector<std::atomic<int64_t>> wrong(all.size());
  dist::run_threads(ranks, [&](const dist::ProcessGroupPtr& group) {
    for (size_t i = 0; i < all.size(); ++i) {
      const Tensor tensor = empty({kCount}, all[i].dtype);
      lab::bench::fill_contribution(tensor, stand_in(group->rank()), ranks);
      group->all_reduce(tensor, {.op = all[i].op})->wait();
      wrong[i] += lab::bench::count_wrong(tensor, all[i].op, ranks);
    }
  });
  return {wrong.begin(), wrong.end()};
}

TEST_CASE("nothing is wrong in any dtype, by any operation, on 1 to 64 ranks") {
  const std::vector<Case> all = cases();
  CHECK(all.size() == 8 * 3 + 4);
  for (const int ranks : {1, 2, 3, 30, 64}) {
    const std::vector<int64_t> wrong = wrong_on(ranks, all, [](int rank) { return rank; });
    for (size_t i = 0; i < all.size(); ++i) {
      CAPTURE(ranks);
      CAPTURE(name(all[i].dtype));
      CAPTURE(dist::name(all[i].op));
      CHECK(wrong[i] == 0);
    }
  }
}

TEST_CASE("a contribution that is not there, or there twice, shows in every dtype") {
  std::vector<Case> sums = cases();
  std::erase_if(sums, [](const Case& each) { return each.op != ReduceOp::Sum; });
  for (const int ranks : {2, 5, 64}) {
    // The last rank contributes the values of rank 0.
    const std::vector<int64_t> wrong = wrong_on(ranks, sums, [&](int rank) { return rank == ranks - 1 ? 0 : rank; });
    for (size_t i = 0; i < sums.size(); ++i) {
      CAPTURE(ranks);
      CAPTURE(name(sums[i].dtype));
      CHECK(wrong[i] > 0);
    }
  }
}

TEST_CASE("every element counts") {
  for (const DType dtype : kDTypes) {
    CAPTURE(name(dtype));
    const Tensor tensor = empty({kCount}, dtype);
    lab::bench::fill_contribution(tensor, 0, 1);
    CHECK(lab::bench::count_wrong(tensor, ReduceOp::Sum, 1) == 0);
    for (const int64_t at : {int64_t{0}, int64_t{100}, kCount - 1}) {
      const size_t size = itemsize(dtype);
      auto* const bytes = static_cast<std::byte*>(tensor.raw_data());
      std::byte* const element = bytes + static_cast<size_t>(at) * size;
      const std::byte* const neighbour = bytes + static_cast<size_t>(at == 0 ? 1 : at - 1) * size;
      std::byte kept[8];
      std::memcpy(kept, element, size);
      std::memcpy(element, neighbour, size);
      CHECK(lab::bench::count_wrong(tensor, ReduceOp::Sum, 1) == 1);
      std::memcpy(element, kept, size);
    }
  }
}

TEST_CASE("bench allreduce finds nothing wrong in the narrow dtypes on 30 ranks, and reports whole elements") {
  for (const std::string dtype : {"bool", "uint8", "bfloat16"}) {
    CAPTURE(dtype);
    const test::Streams found = test::run_program_apart(
        "bench allreduce --backend threads --ranks 30 --rounds 1 --sizes 3,4K --json - --dtype " + dtype);
    CHECK(found.status == 0);
    const nlohmann::json rows = nlohmann::json::parse(found.output).at("results");
    REQUIRE(rows.size() == 8);  // two sizes, two kinds of memory, out of place and in place
    for (const nlohmann::json& row : rows)
      CHECK(row.at("wrong") == 0);
    CHECK(rows[0].at("bytes") == (dtype == "bfloat16" ? 2 : 3));
  }
}

TEST_CASE("values of parts: the turns of a part begin where the part begins, and a copy of another rank is wrong") {
  constexpr int kRanks = 3;
  for (const DType dtype : kDTypes) {
    CAPTURE(name(dtype));
    const Tensor whole = empty({kCount}, dtype), part = empty({kCount - 50}, dtype);
    lab::bench::fill_contribution(whole, 1, kRanks);
    CHECK(lab::bench::count_wrong_copies(whole, 1, kRanks) == 0);
    CHECK(lab::bench::count_wrong_copies(whole.narrow(0, 50, kCount - 50), 1, kRanks, 50) == 0);
    // The two ranks differ in 2 of the 4 values of a period; 197 elements start with positions 0, 1, 2, 3, 0, ...
    CHECK(lab::bench::count_wrong_copies(whole, 0, kRanks) == 50 + 49);
    lab::bench::fill_contribution(part, 2, kRanks, 50);
    CHECK(lab::bench::count_wrong_copies(part, 2, kRanks, 50) == 0);
    CHECK(lab::bench::count_wrong_copies(part, 2, kRanks, 51) > 0);
  }
}

}  // namespace brigade::test::collective_values_test
