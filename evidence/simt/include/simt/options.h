// Scheduling options of kernels and streams. A correct program gives the same result under all of them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace simt {

// The order in which the threads of a block (and the blocks of a grid) run between two barriers. Warps: a warp runs as
// far as it can, through its shuffles up to the next block barrier, before another (randomly chosen) warp runs, so that
// warps drift apart as far as possible. In the other orders, warps reach each shuffle at about the same time.
enum class Order { Forward, Reverse, Random, Warps };

// Reads the environment variable SIMT_ORDER (forward, reverse, random, warps); default Forward. Throws
// std::invalid_argument.
Order default_order();

// Reads the environment variable SIMT_SEED; default 1. SIMT_SEED=random picks a new seed for each process and prints it
// to standard error.
uint64_t default_seed();

struct Options {
  Order order = default_order();
  // Seeds Order::Random, Order::Warps, and the order in which the runtime drains the streams.
  uint64_t seed = default_seed();
  // The number of OS threads that share the blocks of a grid.
  int workers = 1;
  // Makes errors of what hardware tolerates but CUDA does not guarantee: barriers at different lines, a thread that
  // exits while others wait, masks with threads that do not exist or have exited.
  bool strict = true;
  // Stack size of each waiting thread. An overflow hits a guard page.
  size_t stack_bytes = size_t{64} << 10;
  // How long a waiting call keeps waiting while no queued command can run, so that other host threads can enqueue more.
  std::chrono::milliseconds patience{10000};
};

const Options& options();

// Call this while nothing is queued: the drain order restarts from the seed. Throws std::invalid_argument for zero
// workers or a stack below 16 KiB.
void set_options(const Options& options);

// Sets options for the scope of a test.
class ScopedOptions {
 public:
  explicit ScopedOptions(const Options& during) : before_(options()) { set_options(during); }
  ~ScopedOptions() { set_options(before_); }
  ScopedOptions(const ScopedOptions&) = delete;
  ScopedOptions& operator=(const ScopedOptions&) = delete;

 private:
  Options before_;
};

}  // namespace simt
