// A rank that dies, stops, throws or takes another path: every other rank ends within the time-out, with an error that
// names it and what it last did. BRIGADE_REPEATS sets how often each is tried (default 2).
#include "processes.h"

#include <brigade/autograd/functional.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/kernels/factory.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdlib>
#include <stdexcept>
#include <thread>

namespace brigade::test::lost_ranks_test {
enum class Trouble { Kill, Stop, ExceptionInForward, SkippedStep };

struct ModelImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool fails = false;
  ModelImpl() {
    a = register_module("a", nn::Linear(8, 8));
    b = register_module("b", nn::Linear(8, 8));
  }
  Tensor forward(const Tensor& x) {
    if (fails) throw std::runtime_error("a sample has no label");
    return b(relu(a(x)));
  }
};
BRIGADE_MODULE(Model);

std::string train(const dist::ProcessGroupPtr& group, Trouble trouble) {
  Model model;
  dist::DistributedDataParallel<Model> ddp(model, group);
  optim::SGD optimizer(model->parameters(), {.lr = 0.1});
  for (int step = 0; step < 6; ++step) {
    std::this_thread::sleep_for(std::chrono::milliseconds(40));  // loading a batch
    const bool now = step == 3 && group->rank() == 1;
    optimizer.zero_grad();
    model->fails = now && trouble == Trouble::ExceptionInForward;
    const Tensor output = ddp(ones({4, 8}));
    if (now && (trouble == Trouble::Kill || trouble == Trouble::Stop)) {
      output.register_hook([trouble](const Tensor&) -> Tensor {
        std::raise(trouble == Trouble::Kill ? SIGKILL : SIGSTOP);
        return {};
      });
    }
    mean(square(output)).backward();
    if (!(now && trouble == Trouble::SkippedStep)) optimizer.step();
  }
  return "ran to the end";
}

int repeats() {
  const char* text = std::getenv("BRIGADE_REPEATS");
  return text ? std::atoi(text) : 2;
}

void expect(Trouble trouble) {
  for (const std::string& backend : test::backends()) {
    if (backend == "threads") continue;  // a thread does not die alone
    for (int repeat = 0; repeat < repeats(); ++repeat) {
      CAPTURE(backend);
      CAPTURE(repeat);
      const int size = 2 + repeat % 2;
      const auto ranks = test::run_ranks(
          backend, size, [&](dist::ProcessGroupPtr group) { return train(group, trouble); },
          std::chrono::milliseconds(trouble == Trouble::Stop ? 2500 : 60000));
      for (size_t r = 0; r < ranks.size(); ++r) {
        CAPTURE(r);
        if (r == 1) {
          if (trouble == Trouble::Kill) CHECK(ranks[1].signal == SIGKILL);
          if (trouble == Trouble::Stop) CHECK(ranks[1].hung);
          continue;
        }
        CHECK_FALSE(ranks[r].hung);
        CHECK(ranks[r].seconds < 50);  // anything except a stop is reported, not timed out
        const std::string& text = ranks[r].text;
        CHECK_MESSAGE(text.find("ank 1") != std::string::npos, text);
        const bool place = text.find("was last in") != std::string::npos || text.find("is in") != std::string::npos ||
                           text.find("met in different") != std::string::npos;
        CHECK_MESSAGE(place, text);
        if (trouble == Trouble::Stop) {
          CHECK_MESSAGE(ranks[r].error == "TimeoutError", text);
        } else if (trouble == Trouble::SkippedStep) {
          CHECK_MESSAGE(text.find("agreement on a step of DDP") != std::string::npos, text);
          CHECK_MESSAGE(text.find("bucket 0 of DDP(Model)") != std::string::npos, text);
        } else {
          CHECK_MESSAGE(ranks[r].error == "PeerError", text);
        }
        if (trouble == Trouble::ExceptionInForward)
          CHECK_MESSAGE(text.find("a sample has no label") != std::string::npos, text);
      }
    }
  }
}

// Rank 1 dies when half of a message between it and rank 0 has been sent.
void expect_end_in_message(int root) {
  constexpr int64_t kBytes = 64 << 20;  // more than a connection holds
  for (const std::string backend : {"gloo", "hosts:AB"}) {
    CAPTURE(backend);
    const SharedCount begun;
    const auto ranks = test::run_ranks(backend, 2, [&](dist::ProcessGroupPtr group) {
      const Tensor message = zeros({kBytes}, kUInt8);
      if (group->rank() == root) message.fill_(1);
      const dist::WorkPtr work = group->broadcast(message, {.root = root});
      if (group->rank() != root) {
        while (*static_cast<const volatile uint8_t*>(message.raw_data()) == 0) {
        }
        begun.add();
      }
      if (group->rank() == 1) {
        begun.wait_for(1);
        std::raise(SIGKILL);
      }
      work->wait();
      return std::string("came whole");
    });
    CHECK(ranks[1].signal == SIGKILL);
    CHECK(ranks[0].seconds < 50);  // as above
    CHECK_MESSAGE(ranks[0].error == "PeerError", ranks[0].text << ranks[0].result);
    CHECK_MESSAGE(ranks[0].text.find("Rank 1 died") != std::string::npos, ranks[0].text);
  }
}

// Rank 2 and its neighbors have met: rank 2 completes its part of a broadcast and leaves while others wait for rank 4.
std::string leave_early(const dist::ProcessGroupPtr& group, const SharedCount& gone) {
  const Tensor x = full({4}, static_cast<double>(group->rank()));
  if (group->rank() == 4) {
    if (!gone.wait_for(1)) return "rank 2 did not leave";
    // Long enough for several checks of the connections.
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  }
  const SharedCount::AddAtEnd adds{gone};
  group->broadcast(x, {.root = 1})->wait();
  return x.to_vector<float>() == std::vector<float>(4, 1) ? "right" : "other values";
}

TEST_CASE("a rank may leave when it has had its part, while others still wait for a late one") {
  const SharedCount gone;
  const auto ranks =
      test::run_ranks("gloo", 5, [&](const dist::ProcessGroupPtr& group) { return leave_early(group, gone); });
  for (const test::Rank& rank : ranks)
    CHECK_MESSAGE(rank.result == "right", rank.text << rank.result);
}
TEST_CASE("kill -9 of a rank in its backward") { expect(Trouble::Kill); }
TEST_CASE("a rank that is stopped") { expect(Trouble::Stop); }
TEST_CASE("kill -9 of a rank to which a message is under way") { expect_end_in_message(0); }
TEST_CASE("kill -9 of a rank from which a message is under way") { expect_end_in_message(1); }
TEST_CASE("an exception in one rank's forward") { expect(Trouble::ExceptionInForward); }
TEST_CASE("a rank that leaves out a step") { expect(Trouble::SkippedStep); }

}  // namespace brigade::test::lost_ranks_test
