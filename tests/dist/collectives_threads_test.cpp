#include "processes.h"

#include <brigade/core/factory.h>
#include <brigade/dist/groups/own_collectives.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>

namespace brigade::test::collectives_threads_test {
using test::run_ranks;

TEST_CASE("ranks that meet in different collectives learn of both, and nothing is summed") {
  struct Row {
    const char* what;
    std::function<dist::WorkPtr(dist::ProcessGroup&, const Tensor&)> rank1;
    const char* in_text;
  };
  for (const Row& row : std::vector<Row>{
           {"another kind", [](dist::ProcessGroup&g, const Tensor&x) { return g.broadcast(x); },
            "broadcast(from rank 0) of 8 x float32"},
           {"another count", [](dist::ProcessGroup&g, const Tensor&) { return g.all_reduce(empty({9})); },
            "all_reduce(sum) of 9 x float32"},
           {"another dtype", [](dist::ProcessGroup&g, const Tensor&) { return g.all_reduce(empty({8}, kInt32)); },
            "all_reduce(sum) of 8 x int32"},
           {"another operation",
            [](dist::ProcessGroup&g, const Tensor&x) { return g.all_reduce(x, {.op = dist::ReduceOp::Max}); },
            "all_reduce(max)"}}) {
    CAPTURE(row.what);
    const auto outcome = run_ranks("threads", 2, [&](dist::ProcessGroupPtr group) -> std::string {
      const Tensor x = tensor(std::vector<float>(8, 1), {8});
      if (group->rank() == 1) {
        row.rank1(*group, x)->wait();
      } else {
        group->all_reduce(x, {.description = "of rank 0"})->wait();
      }
      return "not reached";
    });
    for (const test::Rank& rank : outcome) {
      CHECK(rank.error == "DistError");
      CHECK(rank.text.find("The ranks met in different collectives") != std::string::npos);
      CHECK(rank.text.find("of rank 0") != std::string::npos);
      CHECK(rank.text.find(row.in_text) != std::string::npos);
      CHECK(rank.text.find("collectives_threads_test.cpp:") != std::string::npos);
    }
  }
}

TEST_CASE("a rank that leaves, aborts, or throws is named to those who wait for it") {
  for (const char* how : {"leaves", "aborts", "throws"}) {
    CAPTURE(how);
    const auto outcome = run_ranks("threads", 3, [&](dist::ProcessGroupPtr group) -> std::string {
      if (group->rank() == 2) {
        if (std::string(how) == "throws") throw std::runtime_error("out of luck");
        if (std::string(how) == "aborts") group->abort("the data ran out");
        return "gone";
      }
      group->barrier();
      return "not reached";
    });
    for (int r : {0, 1}) {
      CHECK(outcome[static_cast<size_t>(r)].error == "PeerError");
      CHECK(outcome[static_cast<size_t>(r)].seconds < 5);
    }
    // One of them learns it from rank 2, the other perhaps from the first one.
    const std::string both = outcome[0].text + outcome[1].text;
    CHECK(both.find("rank 2") != std::string::npos);
    CHECK(both.find(std::string(how) == "aborts" ? "the data ran out" : "left") != std::string::npos);
  }
}

TEST_CASE("run_threads rethrows the first error and ends the others") {
  CHECK_THROWS_WITH(dist::run_threads(3,
                                      [](dist::ProcessGroupPtr group) {
                                        if (group->rank() == 1) throw std::runtime_error("rank 1 stumbled");
                                        group->barrier();
                                      }),
                    "rank 1 stumbled");
}

TEST_CASE("of what a thread has all-reduced it knows the latest 512") {
  dist::run_threads(1, [](dist::ProcessGroupPtr group) {
    std::vector<Tensor> tensors;
    for (int i = 0; i < 5000; ++i) {
      tensors.push_back(empty({1}));
      if (i % 2 == 0) group->all_reduce(tensors.back())->wait();
    }
    int known = 0;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const bool expected = i % 2 == 0 && i >= tensors.size() - 2 * 512;
      if (dist::was_reduced_by_hand(tensors[i]) != expected) FAIL("number ", i);
      known += expected ? 1 : 0;
    }
    CHECK(known == 512);
  });
}

}  // namespace brigade::test::collectives_threads_test
