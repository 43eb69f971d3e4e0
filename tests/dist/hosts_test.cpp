#include "processes.h"

#include <brigade/core/factory.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/rendezvous/rendezvous.h>
#include <brigade/kernels/elementwise.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <random>
#include <stdexcept>
#include <thread>
#include <utility>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace brigade::test::hosts_test {
using namespace std::chrono_literals;
using test::run_ranks;

int ranks_of(const std::string& layout) { return static_cast<int>(layout.size()); }

void expect_no_errors(const std::vector<test::Rank>& ranks) {
  for (const test::Rank& rank : ranks) {
    CHECK_MESSAGE(rank.error == "", rank.error << ": " << rank.text);
    CHECK_FALSE(rank.hung);
  }
}

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Tensor filled(dist::ProcessGroup& group, const std::vector<double>& values, DType dtype) {
  const auto n = static_cast<int64_t>(values.size());
  const Tensor result = group.allocate(n, dtype);
  kernels::copy(result, tensor(values, {n}));
  return result;
}

TEST_CASE("hosts: all ranks hold the same bits of sums that depend on their order") {
  for (const std::string& layout : test::host_layouts()) {
    for (const DType dtype : {kFloat32, kFloat16}) {
      const auto ranks =
          run_ranks("hosts:" + layout, ranks_of(layout), [dtype](dist::ProcessGroupPtr group) -> std::string {
            std::mt19937 random(static_cast<unsigned>(group->rank()));
            std::normal_distribution<double> normal;
            std::string bits;
            for (const int64_t n : {1, 5, 4001}) {
              for (const dist::ReduceOp op : {dist::ReduceOp::Sum, dist::ReduceOp::Avg}) {
                std::vector<double> values;
                for (int64_t i = 0; i < n; ++i)
                  values.push_back(normal(random));
                const Tensor x = filled(*group, values, dtype);
                group->all_reduce(x, {.op = op})->wait();
                bits += std::to_string(
                            std::hash<std::string_view>()({static_cast<const char*>(x.raw_data()), x.nbytes()})) +
                        " ";
              }
            }
            return bits;
          });
      CAPTURE(layout);
      expect_no_errors(ranks);
      for (const test::Rank& rank : ranks)
        CHECK(rank.result == ranks[0].result);
    }
  }
}

TEST_CASE("hosts: sums of half types are kept in float over all hosts, and averages do not overflow") {
  for (const std::string layout : {"AABB", "AAAB", "ABAB"}) {
    CAPTURE(layout);
    expect_no_errors(run_ranks("hosts:" + layout, 4, [](dist::ProcessGroupPtr group) -> std::string {
      // 2048 + 1 is 2048 in float16, 2048 + 2 is not.
      const double mine[] = {2048, 1, 1, 0};
      const Tensor x = filled(*group, std::vector<double>(3, mine[group->rank()]), kFloat16);
      group->all_reduce(x)->wait();
      if (detail::element_as_double(x, 2) != 2050)
        throw std::runtime_error(fmt::format("2048 + 1 + 1 + 0 is {}", detail::element_as_double(x, 2)));
      // The largest: its sum is too large, its average is not.
      const Tensor y = filled(*group, std::vector<double>(5, 65504), kFloat16);
      group->all_reduce(y, {.op = dist::ReduceOp::Avg})->wait();
      if (detail::element_as_double(y, 4) != 65504) throw std::runtime_error("the average overflowed");
      return "";
    }));
  }
}

TEST_CASE("hosts: SIGKILL of a rank is an error of all others that names it by its number in the whole group") {
  for (const std::string layout : {"AABB", "ABAB", "AAAB", "ABBB", "BAABB"}) {
    CAPTURE(layout);
    const int last = ranks_of(layout) - 1;
    const auto ranks = run_ranks(
        "hosts:" + layout, last + 1,
        [last](dist::ProcessGroupPtr group) -> std::string {
          const Tensor x = group->allocate(1 << 14, kFloat32);
          for (int i = 0; i < 1000000; ++i) {
            if (i == 20 && group->rank() == last) kill(getpid(), SIGKILL);
            group->all_reduce(x, {.description = "gradients"})->wait();
          }
          return "";
        },
        60s);
    for (int r = 0; r < last; ++r) {
      const test::Rank& rank = ranks[static_cast<size_t>(r)];
      CAPTURE(r);
      CAPTURE(rank.text);
      CHECK(rank.error == "PeerError");
      // The ranks of its host see its end; other hosts learn of it from them, or, if it was alone, from its connection.
      CHECK(contains(rank.text, fmt::format("Rank {} died", last)));
      CHECK(contains(rank.text, "all_reduce(sum) of 16384 x float32"));
      CHECK(contains(rank.text, "gradients"));
      CHECK(contains(rank.text, "hosts_test.cpp:"));
      CHECK(rank.seconds < 50);  // long before the time-out
    }
  }
}

TEST_CASE("hosts: a rank that does not come is named on its host and on the others") {
  for (const std::string layout : {"AABB", "AAAB", "ABBB", "AB"}) {
    const int last = ranks_of(layout) - 1;
    CAPTURE(layout);
    const test::SharedCount gave_up;
    const auto ranks = run_ranks(
        "hosts:" + layout, last + 1,
        [last, &gave_up](dist::ProcessGroupPtr group) -> std::string {
          const Tensor x = group->allocate(100, kFloat32);
          group->all_reduce(x)->wait();
          if (group->rank() == last) {
            // Busy with something else for longer than the other ranks' timeout.
            return gave_up.wait_for(last) ? "" : "nobody gave up";
          }
          const test::SharedCount::AddAtEnd adds{gave_up};
          group->all_reduce(x, {.description = "the second"})->wait();
          return "";
        },
        1s);
    for (int r = 0; r < last; ++r) {
      const test::Rank& rank = ranks[static_cast<size_t>(r)];
      CAPTURE(r);
      CAPTURE(rank.text);
      CHECK((rank.error == "TimeoutError" || rank.error == "PeerError"));
      CHECK(contains(rank.text, "timed out after"));
      CHECK(contains(rank.text, fmt::format("ank {}", last)));
      CHECK(contains(rank.text, "the second"));
    }
  }
}

TEST_CASE("hosts: a rank that came late and waits itself for one of its host is not blamed by the other hosts") {
  struct Row {
    std::string layout;
    int late, missing;
  };
  for (const Row& row : {Row{"AAB", 0, 1}, Row{"ABA", 0, 2}, Row{"ABAB", 0, 2}}) {
    CAPTURE(row.layout);
    const auto ranks = run_ranks(
        "hosts:" + row.layout, ranks_of(row.layout),
        [&row](dist::ProcessGroupPtr group) -> std::string {
          const Tensor x = group->allocate(100, kFloat32);
          group->all_reduce(x)->wait();
          if (group->rank() == row.missing) {
            std::this_thread::sleep_for(5s);
            return "";
          }
          // In time for its own host, but so late that the other hosts give up first.
          if (group->rank() == row.late) std::this_thread::sleep_for(2s);
          try {
            group->barrier();
          } catch (const DistError& error) {
            const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error);
            if (!diagnosed || diagnosed->verdicts().empty()) return error.what();
            return fmt::format("{} {}", diagnosed->verdicts()[0].kind, dist::list_of(diagnosed->verdicts()[0].ranks));
          }
          return "nothing";
        },
        1s);
    for (int r = 0; r < ranks_of(row.layout); ++r) {
      if (r == row.missing) continue;
      CAPTURE(r);
      CHECK(ranks[static_cast<size_t>(r)].result == fmt::format("collective_timeout {}", row.missing));
      CHECK(ranks[static_cast<size_t>(r)].seconds < 3.5);
    }
  }
}

TEST_CASE("hosts: what a rank says when it gives up or goes reaches every host") {
  for (const std::string how : {"aborts", "throws"}) {
    for (const std::string layout : {"AABB", "AAB", "ABAB"}) {
      CAPTURE(how);
      CAPTURE(layout);
      const int last = ranks_of(layout) - 1;
      const auto ranks = run_ranks(
          "hosts:" + layout, last + 1,
          [last, how](dist::ProcessGroupPtr group) -> std::string {
            const Tensor x = group->allocate(100, kFloat32);
            group->all_reduce(x)->wait();
            if (group->rank() == last) {
              if (how == "aborts") group->abort("the data ran out");
              throw std::runtime_error("the data ran out");
            }
            group->all_reduce(x)->wait();
            return "";
          },
          60s);
      for (int r = 0; r < last; ++r) {
        const test::Rank& rank = ranks[static_cast<size_t>(r)];
        CAPTURE(r);
        CAPTURE(rank.text);
        CHECK(rank.error == "PeerError");
        CHECK(contains(rank.text, fmt::format("Rank {} {}", last, how == "aborts" ? "failed" : "left")));
        CHECK(rank.seconds < 50);  // long before the time-out
      }
    }
  }
}

TEST_CASE("hosts: ranks of a host that meet in different collectives learn both, by their numbers in the group") {
  const auto ranks = run_ranks(
      "hosts:AABB", 4,
      [](dist::ProcessGroupPtr group) -> std::string {
        const Tensor x = group->allocate(400, kFloat32);
        // Both begin by reducing the same number of elements.
        if (group->rank() == 3) {
          group->reduce_scatter(empty({100}), x)->wait();
        } else {
          group->all_reduce(x)->wait();
        }
        return "";
      },
      5s);
  for (const size_t r : {2, 3}) {
    CAPTURE(ranks[r].text);
    CHECK(contains(ranks[r].text, "The ranks met in different collectives: rank 2 in"));
    CHECK(contains(ranks[r].text, "rank 3 in"));
  }
  for (const size_t r : {0, 1}) {
    CAPTURE(ranks[r].text);
    CHECK(ranks[r].error == "DistError");
    CHECK(contains(ranks[r].text, "The ranks met in different collectives: rank 2 in"));
  }
}

TEST_CASE(
    "hosts: a mismatch between hosts, and a barrier to which a rank does not come, give every rank the same verdict") {
  const auto verdict_of = [](const std::function<void()>& run) -> std::string {
    try {
      run();
    } catch (const DistError& error) {
      const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error);
      if (!diagnosed || diagnosed->verdicts().empty()) return error.what();
      const dist::Verdict& verdict = diagnosed->verdicts()[0];
      return fmt::format("{} {}", verdict.kind, dist::list_of(verdict.ranks));
    }
    return "nothing";
  };
  const auto differing = run_ranks(
      "hosts:AAB", 3,
      [&](dist::ProcessGroupPtr group) {
        const Tensor x = group->allocate(group->rank() == 2 ? 101 : 100, kFloat32);
        return verdict_of([&] { group->all_reduce(x)->wait(); });
      },
      5s);
  for (const test::Rank& rank : differing)
    // If two ranks find it, one on each host, neither is blamed.
    CHECK((rank.result == "collective_mismatch 2" || rank.result == "collective_mismatch "));
  for (const std::string layout : {"AABB", "AAB", "ABB"}) {
    const int last = ranks_of(layout) - 1;
    CAPTURE(layout);
    const test::SharedCount gave_up;
    const auto ranks = run_ranks(
        "hosts:" + layout, last + 1,
        [&](dist::ProcessGroupPtr group) -> std::string {
          if (group->rank() == last) return gave_up.wait_for(last) ? "" : "nobody gave up";
          const test::SharedCount::AddAtEnd adds{gave_up};
          return verdict_of([&] { group->monitored_barrier(1500ms); });
        },
        60s);
    for (int r = 0; r < last; ++r) {
      CHECK(ranks[static_cast<size_t>(r)].result == fmt::format("collective_timeout {}", last));
      CHECK(ranks[static_cast<size_t>(r)].seconds < 50);  // long before the group's own time-out
    }
  }
}

TEST_CASE("abort from another thread ends a wait, on every backend") {
  for (const std::string& backend : test::backends()) {
    CAPTURE(backend);
    const test::SharedCount ended;
    const auto ranks = run_ranks(
        backend, 2,
        [&](dist::ProcessGroupPtr group) -> std::string {
          const Tensor x = group->allocate(100, kFloat32);
          group->all_reduce(x)->wait();
          if (group->rank() == 1) return ended.wait_for(1) ? "" : "the wait did not end";
          const test::SharedCount::AddAtEnd adds{ended};
          std::thread other([&] {
            std::this_thread::sleep_for(100ms);
            group->abort("the user had enough");
          });
          const auto begin = std::chrono::steady_clock::now();
          std::string text;
          try {
            group->all_reduce(x)->wait();
          } catch (const DistError& error) {
            text = error.what();
          }
          other.join();
          if (std::chrono::steady_clock::now() - begin > 50s) text = "too late: " + text;
          try {
            group->all_reduce(x)->wait();
            text = "the group can be used again";
          } catch (const DistError&) {
          }
          return text;
        },
        60s);
    CHECK(ranks[0].error == "");
    CHECK(ranks[0].result != "");
    CHECK_FALSE(contains(ranks[0].result, "too late"));
    CHECK_FALSE(contains(ranks[0].result, "used again"));
    if (backend != "gloo") CHECK(contains(ranks[0].result, "aborted on rank 0: the user had enough"));
  }
}

TEST_CASE("auto takes shm on one host, gloo for ranks that are all alone, hosts for what lies between") {
  for (const auto& [layout, expected] :
       std::vector<std::pair<std::string, std::string>>{{"AAA", "shm"}, {"ABC", "gloo"}, {"AAB", "hosts"}}) {
    const std::string folder =
        (std::filesystem::temp_directory_path() / fmt::format("brigade-auto-{}-{}", layout, getpid())).string();
    const auto ranks = run_ranks("hosts:" + layout, 3, [&](dist::ProcessGroupPtr group) -> std::string {
      const auto chosen = dist::init_process_group(
          {.init_method = "file://" + folder, .rank = group->rank(), .world_size = group->size()});
      chosen->barrier();
      return chosen->backend();
    });
    expect_no_errors(ranks);
    for (const test::Rank& rank : ranks)
      CHECK(rank.result == expected);
  }
}

TEST_CASE("a host that is given a strange name is an error that says which names there may be") {
  setenv("BRIGADE_HOST_ID", "two words", 1);
  CHECK_THROWS_WITH_AS(dist::host_identity(),
                       "BRIGADE_HOST_ID must be at most 64 letters, digits, dots, dashes or underscores, got 'two "
                       "words'",
                       DistError);
  setenv("BRIGADE_HOST_ID", "other", 1);
  const std::string other = dist::host_identity();
  unsetenv("BRIGADE_HOST_ID");
  CHECK(other == dist::host_identity() + "/other");
}

TEST_CASE("processes in other network or user namespaces count as another host") {
  for (const auto& [name, space] : {std::pair("net", CLONE_NEWNET), std::pair("user", CLONE_NEWUSER)}) {
    CAPTURE(name);
    const std::string here = dist::host_identity();
    const pid_t child = fork();
    if (child == 0) {
      if (unshare(space) != 0) _exit(77);
      _exit(dist::host_identity() == here ? 1 : 0);
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
      MESSAGE("SKIPPED: no new namespaces for this user");
      continue;
    }
    CHECK(status == 0);
  }
}

}  // namespace brigade::test::hosts_test
