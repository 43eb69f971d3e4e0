#include <brigade/core/random.h>

namespace brigade {

Generator& default_generator() noexcept {
  thread_local Generator generator;
  return generator;
}

void manual_seed(uint64_t seed) noexcept { default_generator().manual_seed(seed); }

}  // namespace brigade
