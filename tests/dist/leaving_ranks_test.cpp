// A rank that leaves in the middle, by an exception, a return, an exit with 0 or a signal, at different points and with
// random delays: all others name it, with one verdict, and say what to do. BRIGADE_REPEATS sets how often each is tried
// (default 4), BRIGADE_SEED the delays.
#include "nets.h"
#include "processes.h"

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/rendezvous/store.h>
#include <brigade/kernels/factory.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>

#include <unistd.h>

namespace brigade::test::leaving_ranks_test {
using test::BranchingNet;

enum class Way { Throw, Catch, Return, Exit, Kill };

int from_environment(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text ? std::atoi(text) : otherwise;
}

struct Case {
  Way way;
  int leaver;
  int step;
  int point;  // 0: before forward, 1: before backward, 2: before the step, 3: with a collective posted
  unsigned seed;
};

// Ends the rank, or returns true if the rank has to return.
bool leaves(Way way) {
  if (way == Way::Throw || way == Way::Catch) throw std::runtime_error("a sample has no label");
  if (way == Way::Exit) _exit(0);
  if (way == Way::Kill) std::raise(SIGKILL);
  return true;
}

void train(const dist::ProcessGroupPtr& group, const Case& what) {
  std::mt19937 random(what.seed + static_cast<unsigned>(group->rank()));
  const auto nap = [&](int most) {
    std::this_thread::sleep_for(std::chrono::milliseconds(random() % static_cast<unsigned>(most)));
  };
  BranchingNet net;
  dist::DistributedDataParallel<BranchingNet> ddp(net, group);
  optim::SGD optimizer(net->parameters(), {.lr = 0.1});
  const Tensor metric = full({4}, 1.0);
  for (int step = 0; step < 4; ++step) {
    const auto is_at = [&](int point) {
      return group->rank() == what.leaver && step == what.step && point == what.point;
    };
    nap(30);
    if (is_at(0) && leaves(what.way)) return;
    const Tensor loss = square(ddp(full({2, 4}, 1.0))).mean();
    nap(10);
    if (is_at(1) && leaves(what.way)) return;
    loss.backward();
    nap(10);
    if (is_at(2) && leaves(what.way)) return;
    optimizer.step();
    optimizer.zero_grad();
    const dist::WorkPtr posted = group->all_reduce(metric, {.description = "metric"});
    if (is_at(3) && leaves(what.way)) return;
    posted->wait();
  }
}

// The verdict of another rank, as "rank_lost 1 exception: ADVICE", then "|" and the text of the error.
std::string told(const std::exception& error) {
  const auto* diagnosed = dynamic_cast<const dist::Diagnosed*>(&error);
  if (!diagnosed || diagnosed->verdicts().empty()) return fmt::format("no verdict: {}|", error.what());
  const dist::Verdict& verdict = diagnosed->verdicts()[0];
  return fmt::format("{} {} {}: {}|{}", verdict.kind, dist::list_of(verdict.ranks), dist::name(verdict.cause.kind),
                     verdict.advice, error.what());
}

// A port that is free now.
int free_port() { return dist::TcpStoreServer("127.0.0.1", 0).port(); }

// "gloo by rank 0": the store is in rank 0's process, as without a launcher.
std::vector<test::Rank> run(const std::string& backend, int size, const Case& what) {
  const bool own_store = backend == "gloo by rank 0";
  const int port = own_store ? free_port() : 0;
  const auto body = [&](dist::ProcessGroupPtr group) -> std::string {
    if (own_store) {
      group = dist::init_process_group({.backend = "gloo",
                                        .init_method = fmt::format("tcp://127.0.0.1:{}", port),
                                        .rank = group->rank(),
                                        .world_size = size,
                                        .timeout = std::chrono::seconds(60)});
    }
    const bool is_leaver = group->rank() == what.leaver;
    // The rank catches its own exception, and leaves in order.
    const dist::ProcessGroupPtr kept = what.way == Way::Catch ? group : nullptr;
    try {
      train(std::exchange(group, nullptr), what);
    } catch (const DistError& error) {
      return told(error);
    } catch (const std::exception&) {
      if (!is_leaver) throw;
    }
    return "left or came to the end|";
  };
  return test::run_ranks(own_store ? "shm" : backend, size, body);
}

void expect_one_verdict(const std::string& backend, Way way) {
  std::mt19937 random(static_cast<unsigned>(from_environment("BRIGADE_SEED", 1)) + static_cast<unsigned>(way));
  const int repeats = from_environment("BRIGADE_REPEATS", 4);
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const int size = 2 + static_cast<int>(random() % 3);
    const Case what{.way = way,
                    .leaver = static_cast<int>(random() % static_cast<unsigned>(size)),
                    .step = 1 + static_cast<int>(random() % 2),
                    .point = static_cast<int>(random() % 4),
                    .seed = static_cast<unsigned>(random())};
    CAPTURE(backend);
    CAPTURE(repeat);
    CAPTURE(size);
    CAPTURE(what.leaver);
    CAPTURE(what.step);
    CAPTURE(what.point);
    const auto ranks = run(backend, size, what);
    const bool is_exception = way == Way::Throw || way == Way::Catch;
    std::optional<std::string> first;
    for (int r = 0; r < size; ++r) {
      if (r == what.leaver) continue;
      CAPTURE(r);
      const test::Rank& rank = ranks[static_cast<size_t>(r)];
      CHECK_MESSAGE(rank.error == "", rank.text);
      CHECK_FALSE(rank.hung);
      CHECK(rank.seconds < 50);  // reported, not timed out
      const size_t bar = rank.result.find('|');
      const std::string verdict = rank.result.substr(0, bar);
      const std::string text = rank.result.substr(std::min(bar, rank.result.size()));
      if (!first) first = verdict;
      CHECK_MESSAGE(verdict == *first, text);
      CHECK_MESSAGE(
          verdict.starts_with(fmt::format("rank_lost {} {}: ", what.leaver, is_exception ? "exception" : "rank_gone")),
          text);
      CHECK_MESSAGE(text.find("\ndo:  " + verdict.substr(verdict.find(": ") + 2)) != std::string::npos, text);
      if (way == Way::Return || way == Way::Exit)
        CHECK_MESSAGE(verdict.find("left its loop before the others") != std::string::npos, text);
    }
  }
}

TEST_CASE("a rank that throws is one verdict for the others") {
  for (const char* backend : {"threads", "shm", "gloo", "gloo by rank 0"})
    expect_one_verdict(backend, Way::Throw);
}
TEST_CASE("a rank that catches the exception which ended its training is one verdict for the others") {
  for (const char* backend : {"threads", "shm", "gloo", "gloo by rank 0"})
    expect_one_verdict(backend, Way::Catch);
}
TEST_CASE("a rank that returns early is one verdict for the others") {
  for (const char* backend : {"threads", "shm", "gloo", "gloo by rank 0"})
    expect_one_verdict(backend, Way::Return);
}
TEST_CASE("a rank that exits with 0 in the middle has left") {
  for (const char* backend : {"shm", "gloo", "gloo by rank 0"})
    expect_one_verdict(backend, Way::Exit);
}
TEST_CASE("a rank that is killed is one verdict for the others") {
  for (const char* backend : {"shm", "gloo", "gloo by rank 0"})
    expect_one_verdict(backend, Way::Kill);
}

}  // namespace brigade::test::leaving_ranks_test
