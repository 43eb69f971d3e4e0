// A rank that throws, leaves, hangs, never joins, or aborts, in an NCCL step or a captured one: every rank ends,
// surviving ranks get an error that states the cause, and all device memory is released.
#include "on_device.h"
#include "on_gpus.h"

#include <brigade/autograd/functional.h>
#include <brigade/core/cuda/allocator.h>
#include <brigade/core/cuda/graph.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <stdexcept>
#include <thread>

#ifndef BRIGADE_REAL_CUDA
#include <simt/runtime.h>
#endif

namespace brigade::test::nccl_lost_ranks_test {
namespace {

constexpr std::chrono::milliseconds kTimeout{1000};
constexpr std::chrono::seconds kLongest{15};  // generous, for a busy machine
constexpr int kLost = 1;

enum class Trouble {
  None,
  NeverComes,
  ThrowsInForward,
  ThrowsInBackward,
  Leaves,
  Hangs,
  GivesUpInBackward,
  ThrowsInCapture,
  GivesUpInCapture,
  LeavesBeforeReplay,
  HangsBeforeReplay,
  GivesUpBeforeReplay
};

struct NetImpl : nn::Module {
  nn::Linear a{nullptr}, b{nullptr};
  bool fails = false;
  NetImpl() {
    a = register_module("a", nn::Linear(4, 8));
    b = register_module("b", nn::Linear(8, 3));
  }
  Tensor forward(const Tensor& x) {
    const Tensor features = brigade::tanh(a(x));
    if (fails) throw std::runtime_error("a sample has no label");
    return b(features);
  }
};
BRIGADE_MODULE(Net);

struct Training {
  dist::ProcessGroupPtr group;
  Device device;
  Net net;
  std::unique_ptr<dist::DistributedDataParallel<Net>> ddp;
  std::unique_ptr<optim::SGD> optimizer;
  Tensor x;

  Training(const dist::ProcessGroupPtr& of, Device where) : group(of), device(where) {
    manual_seed(11);
    net = Net();
    net->to(device);
    x = numbers({6, 4}, kFloat32, static_cast<uint64_t>(group->rank() + 1)).to(device);
    ddp = std::make_unique<dist::DistributedDataParallel<Net>>(
        net, group, dist::DDPOptions{.bucket_cap_mb = 1e-6, .first_bucket_mb = 1e-6});
    optimizer = std::make_unique<optim::SGD>(net->parameters(), optim::SGDOptions{.lr = 0.1});
  }
  void step(Trouble trouble = Trouble::None) {
    optimizer->zero_grad();
    net->fails = trouble == Trouble::ThrowsInForward || trouble == Trouble::ThrowsInCapture;
    const Tensor y = (*ddp)(x);
    if (trouble == Trouble::ThrowsInBackward) {
      y.register_hook([](const Tensor&) -> Tensor { throw std::runtime_error("a hook has no label"); });
    }
    if (trouble == Trouble::GivesUpInBackward || trouble == Trouble::GivesUpInCapture) {
      net->b->weight.register_hook([this](const Tensor&) -> Tensor {
        group->abort("the budget is used up");
        return {};
      });
    }
    (y * y).mean().backward();
    optimizer->step();
  }
};

uint64_t bytes_in_use(int device) {
#ifdef BRIGADE_REAL_CUDA
  return cuda::allocator_stats(device).bytes_reserved;
#else
  return simt::allocated_bytes(device);  // includes NCCL's memory
#endif
}

void hang() { std::this_thread::sleep_for(4 * kTimeout); }

// Runs six eager steps.
void train(const dist::ProcessGroupPtr& group, Device device, Trouble trouble) {
  if (trouble == Trouble::NeverComes) return;
  Training training(group, device);
  for (int i = 0; i < 6; ++i) {
    const Trouble now = i == 3 ? trouble : Trouble::None;
    if (now == Trouble::Leaves) return;
    if (now == Trouble::Hangs) hang();
    training.step(now);
  }
  training.net->parameters()[0].to_vector<double>();  // waits for the device
}

// Runs two eager steps, then captures one and replays it repeatedly.
void train_captured(const dist::ProcessGroupPtr& group, Device device, Trouble trouble) {
  Training training(group, device);
  for (int i = 0; i < 2; ++i)
    training.step();
  cuda::Graph graph;
  const bool in_capture = trouble == Trouble::ThrowsInCapture || trouble == Trouble::GivesUpInCapture;
  graph.capture([&] { training.step(in_capture ? trouble : Trouble::None); });
  for (int i = 0; i < 6; ++i) {
    const Trouble now = i == 3 ? trouble : Trouble::None;
    if (now == Trouble::LeavesBeforeReplay) return;
    if (now == Trouble::HangsBeforeReplay) hang();
    if (now == Trouble::GivesUpBeforeReplay) group->abort("the budget is used up");
    graph.replay();
    training.net->parameters()[0].to_vector<double>();
  }
}

struct End {
  std::string error = "did not end";
  double seconds = 0;
};

// How each rank ends if one of them has this trouble during `body`.
using Body = void (*)(const dist::ProcessGroupPtr& group, Device device, Trouble trouble);
std::vector<End> ends_of(int ranks, Body body, Trouble trouble) {
  std::vector<End> ends(static_cast<size_t>(ranks));
  try {
    on_gpus(
        ranks,
        [&](const dist::ProcessGroupPtr& group, Device device) {
          End& end = ends[static_cast<size_t>(group->rank())];
          const auto begin = std::chrono::steady_clock::now();
          const auto note = [&](const std::string& error) {
            end = {error, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
          };
          try {
            body(group, device, group->rank() == kLost ? trouble : Trouble::None);
            note("");
          } catch (const std::exception& error) {
            note(error.what());
            throw;
          }
        },
        kTimeout);
  } catch (const std::exception&) {
  }
  return ends;
}

struct Case {
  Trouble trouble;
  const char* what;
  const char* words;      // in the error of every other rank
  const char* own_words;  // in the error of the rank itself; "" if it ends without one
};

// Runs on 2 and 4 ranks. Afterwards the same ranks must train normally and use the same amount of memory as before.
void all_end(Body body, const std::vector<Case>& cases) {
  for (const int ranks : {2, 4}) {
    if (!has_gpus_for(ranks)) continue;
    const auto train_well = [&] {
      for (const End& end : ends_of(ranks, body, Trouble::None))
        CHECK(end.error == "");
      cuda::empty_cache();
      uint64_t bytes = 0;
      for (int device = 0; device < ranks; ++device)
        bytes += bytes_in_use(device);
      return bytes;
    };
    train_well();
    const uint64_t before = train_well();
    for (const Case& each : cases) {
      CAPTURE(ranks);
      CAPTURE(std::string(each.what));
      const std::vector<End> ends = ends_of(ranks, body, each.trouble);
      for (size_t rank = 0; rank < ends.size(); ++rank) {
        CAPTURE(rank);
        const End& end = ends[rank];
        const std::string words = rank == kLost ? each.own_words : each.words;
        CHECK_MESSAGE(end.error.find(words) != std::string::npos, end.error);
        CHECK_MESSAGE(end.error.empty() == words.empty(), end.error);
        CHECK(end.seconds < std::chrono::duration<double>(kLongest).count());
      }
      CHECK(train_well() == before);
    }
  }
}

}  // namespace

TEST_CASE("a step: whatever happens to one rank, all end, and say what happened") {
  all_end(&train, {{Trouble::NeverComes, "never comes", "rank 1", ""},
                   {Trouble::ThrowsInForward, "throws in forward", "a sample has no label", "a sample has no label"},
                   {Trouble::ThrowsInBackward, "throws in backward", "a hook has no label", "a hook has no label"},
                   {Trouble::Leaves, "leaves", "rank 1", ""},
                   {Trouble::Hangs, "hangs", "rank 1", "rank"},
                   {Trouble::GivesUpInBackward, "gives up", "the budget is used up", "the budget is used up"}});
}

TEST_CASE("a captured step: whatever happens to one rank, all end, and say what happened") {
  all_end(
      &train_captured,
      {{Trouble::ThrowsInCapture, "throws in the capture", "a sample has no label", "a sample has no label"},
       {Trouble::GivesUpInCapture, "gives up in the capture", "the budget is used up", "the budget is used up"},
       {Trouble::LeavesBeforeReplay, "leaves before a replay", "a replay of a CUDA graph", ""},
       {Trouble::HangsBeforeReplay, "hangs before a replay", "a replay of a CUDA graph", "replay"},
       {Trouble::GivesUpBeforeReplay, "gives up before a replay", "the budget is used up", "the budget is used up"}});
}

}  // namespace brigade::test::nccl_lost_ranks_test
