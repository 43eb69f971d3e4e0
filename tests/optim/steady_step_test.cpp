// A training step with the same shapes as the previous one takes no memory from the operating system: no page faults,
// and no system calls of the tensor allocator.
#include <brigade/autograd/functional.h>
#include <brigade/core/allocator.h>
#include <brigade/nn/nn.h>
#include <brigade/optim/optim.h>

#include <doctest/doctest.h>

#include <sys/resource.h>

#include <cstdlib>
#include <cstring>
#include <functional>

namespace brigade::test::steady_step_test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kOwnMemory = false;  // sanitizers touch shadow memory and delay frees
#else
constexpr bool kOwnMemory = true;
#endif

int64_t page_faults() {
  rusage usage{};
  REQUIRE(getrusage(RUSAGE_SELF, &usage) == 0);
  return usage.ru_minflt + usage.ru_majflt;
}

// Whether the tensor allocator caches memory, as it does unless BRIGADE_CPU_ALLOC=system.
bool cached() {
  const char* chosen = std::getenv("BRIGADE_CPU_ALLOC");
  return kOwnMemory && (chosen == nullptr || std::strcmp(chosen, "system") != 0);
}

// Runs rounds of steps; the first warms up, and one of the others must take no memory. (Occasionally the operating
// system moves a page, or threads interleave so that one more block is needed.)
void check_steady(const std::function<void()>& step) {
  if (!cached()) {
    MESSAGE("not checked: a sanitizer or BRIGADE_CPU_ALLOC=system takes each block from the operating system");
    return;
  }
  constexpr int kSteps = 30, kRounds = 5;
  int64_t faults = 0;
  uint64_t calls = 0;
  for (int round = 0; round <= kRounds; ++round) {
    const int64_t faults_before = page_faults();
    const uint64_t calls_before = cpu_allocator_stats().system_calls;
    for (int i = 0; i < kSteps; ++i)
      step();
    faults = page_faults() - faults_before;
    calls = cpu_allocator_stats().system_calls - calls_before;
    if (round > 0 && faults == 0 && calls == 0) return;
  }
  FAIL_CHECK("in each round of " << kSteps << " steps memory was taken; in the last " << faults << " page faults and "
                                 << calls << " requests to the operating system");
}

TEST_CASE("an MLP's step after warm-up makes no page fault") {
  nn::Sequential net(nn::Linear(64, 256), nn::ReLU(), nn::Linear(256, 256), nn::GELU(), nn::Linear(256, 10));
  optim::SGD optimizer(net->parameters(), {.lr = 0.01, .momentum = 0.9});
  const Tensor x = randn({128, 64}), labels = zeros({128}, {kInt64});
  check_steady([&] {
    optimizer.zero_grad();
    cross_entropy(net(x), labels).backward();
    optim::clip_grad_norm_(net->parameters(), 1);
    optimizer.step();
  });
}

TEST_CASE("a CNN's step after warm-up makes no page fault") {
  nn::Sequential net(nn::Conv2d(3, 16, 3, nn::Conv2dOptions{.padding = 1}), nn::BatchNorm2d(16), nn::ReLU(),
                     nn::MaxPool2d(2), nn::Conv2d(16, 32, 3, nn::Conv2dOptions{.padding = 1}), nn::ReLU(),
                     nn::Flatten(), nn::Linear(32 * 64, 10));
  optim::AdamW optimizer(net->parameters(), {.lr = 1e-3});
  const Tensor x = randn({16, 3, 16, 16}), labels = zeros({16}, {kInt64});
  check_steady([&] {
    optimizer.zero_grad();
    cross_entropy(net(x), labels).backward();
    optimizer.step();
  });
}

TEST_CASE("a GPT's step after warm-up makes no page fault") {
  nn::GPT net({.vocab_size = 64, .block_size = 64, .n_layer = 2, .n_head = 4, .n_embd = 64, .dropout = 0.1});
  optim::AdamW optimizer(net->parameters(), {.lr = 1e-3});
  const Tensor tokens = zeros({4, 64}, {kInt64}), labels = zeros({4 * 64}, {kInt64});
  check_steady([&] {
    optimizer.zero_grad();
    cross_entropy(net(tokens).reshape({4 * 64, 64}), labels).backward();
    optimizer.step();
  });
}

}  // namespace brigade::test::steady_step_test
