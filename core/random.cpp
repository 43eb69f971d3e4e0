// The generator of each thread, and its seed.
#include <brigade/core/random.h>

#include <atomic>

namespace brigade {

RandomGenerator& default_generator() noexcept {
  static std::atomic<uint64_t> threads{0};
  thread_local RandomGenerator generator(threads.fetch_add(1, std::memory_order_relaxed));
  return generator;
}

void manual_seed(uint64_t seed) noexcept { default_generator().manual_seed(seed); }

}  // namespace brigade
