// How kernels and streams are scheduled. A right program gives the same result under all of these.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace simt {

// In which order the threads of a block (and the blocks of a grid) run between two barriers. Warps: one warp runs as
// far as it can, through its shuffles up to the next barrier of the block, before another one does (which, chance
// decides): warps are as far apart as they may be. In the other orders they come to each shuffle at about the same
// time.
enum class Order { Forward, Reverse, Random, Warps };

// The environment variable SIMT_ORDER (forward, reverse, random, warps), or Forward. Throws std::invalid_argument.
Order default_order();

// The environment variable SIMT_SEED, or 1. SIMT_SEED=random: another one for each process, which says it on standard
// error.
uint64_t default_seed();

struct Options {
  Order order = default_order();
  // Of Order::Random, of Order::Warps and of the order in which the runtime drains the streams.
  uint64_t seed = default_seed();
  // OS threads that share the blocks of a grid.
  int workers = 1;
  // What hardware tolerates but CUDA does not promise is an error: barriers at different lines, a thread that exits
  // while others wait, masks that name threads that do not exist or have exited.
  bool strict = true;
  // Of each thread that waits. An overflow hits a guard page.
  size_t stack_bytes = size_t{64} << 10;
  // How long a call that waits goes on when nothing that is queued can run, for other host threads to queue more.
  std::chrono::milliseconds patience{10000};
};

const Options& options();

// Call it while nothing is queued: the drain order starts anew from the seed. Throws std::invalid_argument on no
// workers or a stack under 16 KiB.
void set_options(const Options& options);

// Sets options for a scope of a test.
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
