// The launchers of two nodes at the end of a job.
#include <brigade/dist/rendezvous/store.h>

#include "program.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>
#include <utility>

#include <unistd.h>

namespace brigade::test::node_exits_test {

using test::contains;

// One rank on each node: rank 0 runs `first`, rank 1 `last`.
std::pair<test::Outcome, test::Outcome> run_two_nodes(const std::string& last, double exit_timeout,
                                                      const std::string& first = "true", int restarts = 0) {
  const int port = dist::TcpStoreServer("127.0.0.1", 0).port();
  const auto run = [&](int node) {
    return test::run_program(
        fmt::format("run -n 1 --nnodes 2 --node-rank {} --master-port {} --meeting-timeout 120 --exit-timeout {} "
                    "--max-restarts {} -- "
                    "sh -c 'if test $RANK = 0; then {}; else {}; fi'",
                    node, port, exit_timeout, restarts, first, last));
  };
  std::pair<test::Outcome, test::Outcome> outcomes;
  std::thread other([&] { outcomes.second = run(1); });
  outcomes.first = run(0);
  other.join();
  return outcomes;
}

TEST_CASE("launchers of several nodes wait for each other") {
  const auto begin = std::chrono::steady_clock::now();
  const auto [first, second] = run_two_nodes("sleep 1", 120);
  CHECK_MESSAGE(first.status == 0, first.output);
  CHECK_MESSAGE(second.status == 0, second.output);
  CHECK(first.output.empty());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(100));
}

TEST_CASE("a launcher that stands still for a while when its rank ends costs nobody the job") {
  for (const bool is_first : {true, false}) {
    CAPTURE(is_first);
    const std::string file =
        (std::filesystem::temp_directory_path() / fmt::format("brigade-stopped-{}", getpid())).string();
    // The launcher is the parent of the process that started the rank.
    const std::string stops =
        fmt::format("l=$(cut -d\" \" -f4 /proc/$PPID/stat); kill -STOP $l; echo $l > {0}.new; mv {0}.new {0}", file);
    std::thread waker([&] {
      int launcher = 0;
      for (int tries = 0; tries < 1200 && !(std::ifstream(file) >> launcher); ++tries)
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      std::this_thread::sleep_for(std::chrono::milliseconds(2500));
      if (launcher > 0) kill(launcher, SIGCONT);
    });
    const auto [first, second] = run_two_nodes(is_first ? "true" : stops, 120, is_first ? stops : "true");
    waker.join();
    CHECK(std::filesystem::remove(file));
    CHECK_MESSAGE(first.status == 0, first.output);
    CHECK_MESSAGE(second.status == 0, second.output);
  }
}

TEST_CASE("a node that fails is the outcome of the others, too") {
  const auto [first, second] = run_two_nodes("sleep 0.5; echo no luck >&2; exit 3", 120);
  CHECK_MESSAGE(first.status == 3, first.output);
  CHECK_MESSAGE(contains(first.output, "node 1 failed with status 3: "), first.output);
  CHECK_MESSAGE(contains(first.output, "no luck"), first.output);
  CHECK(second.status == 3);
}

TEST_CASE("a node that runs on after the others have ended is named") {
  const auto [first, second] = run_two_nodes("sleep 3600", 1);
  CHECK_MESSAGE(first.status == 1, first.output);
  CHECK_MESSAGE(contains(first.output, "node 1 still runs 1.0 s after the last of the other nodes has ended"),
                first.output);
  CHECK_MESSAGE(second.status == 1, second.output);
  CHECK_MESSAGE(contains(second.output, "node 0 failed with status 1: node 1 still runs 1.0 s"), second.output);
}

TEST_CASE("a node that fails ends the ranks of the others, and each node knows why") {
  const auto begin = std::chrono::steady_clock::now();
  const auto [first, second] = run_two_nodes("sleep 3600", 120, "exit 7");
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(100));
  CHECK_MESSAGE(first.status == 7, first.output);
  CHECK_MESSAGE(second.status == 7, second.output);
  CHECK_MESSAGE(contains(second.output, "node 0 failed with status 7: "), second.output);
}

TEST_CASE("a node that fails last is the outcome of those whose ranks were ended") {
  const auto [first, second] = run_two_nodes("sleep 0.5; exit 5", 120, "sleep 3600");
  CHECK_MESSAGE(first.status == 5, first.output);
  CHECK_MESSAGE(contains(first.output, "node 1 failed with status 5: rank 1 exited with status 5 first"), first.output);
  CHECK_MESSAGE(second.status == 5, second.output);
}

TEST_CASE("nodes are in the same attempt: one that fails starts all again, those that wait and those that have ended") {
  const std::string attempt = "echo attempt $TORCHELASTIC_RESTART_COUNT; ";
  for (const std::string first : {"test $TORCHELASTIC_RESTART_COUNT = 1 || exec sleep 37.25", "true"}) {
    CAPTURE(first);
    const auto [waits, fails] =
        run_two_nodes(attempt + "test $TORCHELASTIC_RESTART_COUNT = 1 || exit 3", 20, attempt + first, 3);
    for (const test::Outcome* node : {&waits, &fails}) {
      CHECK_MESSAGE(node->status == 0, node->output);
      CHECK_MESSAGE(contains(node->output, "attempt 1\n"), node->output);
      CHECK_MESSAGE(contains(node->output, "restart 1 of 3"), node->output);
      CHECK_FALSE_MESSAGE(contains(node->output, "attempt 2"), node->output);
    }
    CHECK_MESSAGE(contains(waits.output, "brigade run: node 1 failed with status 3: rank 1 exited with status 3 first"),
                  waits.output);
  }
}

}  // namespace brigade::test::node_exits_test
