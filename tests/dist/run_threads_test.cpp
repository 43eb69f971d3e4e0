// Ranks as threads, one of which does not end.
#include "in_child.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/error.h>
#include <brigade/dist/groups/new_group.h>
#include <brigade/dist/groups/threads/run_threads.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

namespace brigade::test::run_threads_test {
using namespace std::chrono_literals;

TEST_CASE("run_threads: a rank that runs on after the others ends the process, and is named") {
  const auto [status, text] = in_child([] {
    dist::run_threads(
        3,
        [](const dist::ProcessGroupPtr& group) {
          if (group->rank() == 1) group->note_activity("reading pictures", {});
          while (group->rank() == 1)
            std::this_thread::sleep_for(1ms);
          if (group->rank() == 2) throw ValueError("the cause");
        },
        5s, 200ms);
  });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGABRT);
  const auto has = [&output = text](const char* part) { return output.find(part) != std::string::npos; };
  CHECK_MESSAGE(has("run_threads: rank 1 has run on for 200 ms after the last of the others had ended; "), text);
  CHECK_MESSAGE(has("reading pictures"), text);
  CHECK_MESSAGE(has("; before that a rank failed: the cause"), text);
}

TEST_CASE("run_threads: ranks that end one after the other are waited for") {
  std::atomic<int> ended{0};
  dist::run_threads(
      4,
      [&](const dist::ProcessGroupPtr& group) {
        std::this_thread::sleep_for(group->rank() * 600ms);
        ++ended;
      },
      60s, 1500ms);
  CHECK(ended == 4);
}

TEST_CASE("run_threads: a time that is none is refused") {
  CHECK_THROWS_AS(dist::run_threads(
                      1, [](const dist::ProcessGroupPtr&) {}, 5s, -1ms),
                  ValueError);
  dist::run_threads(
      2, [](const dist::ProcessGroupPtr& group) { std::this_thread::sleep_for(group->rank() * 50ms); }, 5s,
      std::chrono::milliseconds::max());
}

TEST_CASE(
    "exit(0) before ranks that are threads have ended, or while another thread runs a backward, ends with status 1") {
  struct Row {
    const char* name;
    void (*body)();
    const char* words;
  };
  const Row rows[] = {
      {"a rank",
       [] {
         dist::run_threads(2, [](const dist::ProcessGroupPtr& group) {
           if (group->rank() == 1) std::exit(0);
           group->barrier();
         });
       },
       "before the ranks of this process, which are threads, had ended"},
      {"a second thread",
       [] {
         const std::string folder = "file:///tmp/brigade-exit-" + std::to_string(getppid());
         const auto group =
             dist::init_process_group({.backend = "shm", .init_method = folder, .rank = 0, .world_size = 1});
         Tensor weight = ones({2});
         weight.requires_grad_();
         weight.register_hook([](const Tensor&) -> Tensor {
           std::thread([] { std::exit(0); }).join();
           return {};
         });
         sum(weight).backward();
       },
       "while a backward ran on another thread"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const auto [status, text] = in_child(row.body);
    std::filesystem::remove_all("/tmp/brigade-exit-" + std::to_string(getpid()));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 1);
    CHECK_MESSAGE(text.find(row.words) != std::string::npos, text);
  }
}

TEST_CASE("a group of threads takes memory for the ranks that it has, and gives it back") {
  const auto resident = [] {  // bytes
    std::ifstream file("/proc/self/statm");
    int64_t all = 0, pages = 0;
    file >> all >> pages;
    return pages * sysconf(_SC_PAGESIZE);
  };
  constexpr int64_t kGroups = 40;
  dist::run_threads(2, [&](const dist::ProcessGroupPtr& group) {
    const int64_t before = resident();
    std::vector<dist::ProcessGroupPtr> groups;
    for (int i = 0; i < kGroups; ++i) {
      groups.push_back(dist::new_group(group, {0, 1}));
      groups.back()->barrier();
    }
    const int64_t with = resident();
    group->barrier();
    // 36 KiB of each rank's block, and what threads and their records take.
    CHECK(with - before < kGroups * (512 << 10));
    groups.clear();
    group->barrier();
    // Groups that follow each other reuse the memory. (A sanitizer keeps some of it for a while.)
    const int64_t first = resident();
    for (int i = 0; i < 5 * kGroups; ++i)
      dist::new_group(group, {0, 1})->barrier();
    group->barrier();
    CHECK(resident() - first < 64 << 20);
  });
}

}  // namespace brigade::test::run_threads_test
