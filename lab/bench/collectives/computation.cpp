// A chain of multiplications, each of which depends on the previous one.
#include <brigade/lab/bench/collectives/computation.h>

#include <algorithm>
#include <chrono>

namespace brigade::lab::bench {

namespace {

// Keeps the compiler from removing the computation.
volatile double kept = 1;

}  // namespace

Computation::Computation() {
  constexpr int64_t kSteps = 200'000;
  double best = 1e30;
  for (int i = 0; i < 5; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run(kSteps);
    best = std::min(best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count());
  }
  steps_per_us_ = static_cast<double>(kSteps) / best;
}

int64_t Computation::steps_in(double us) const { return static_cast<int64_t>(us * steps_per_us_); }

void Computation::run(int64_t steps) const {
  double x = kept;
  for (int64_t i = 0; i < steps; ++i)
    x = x * 0.999 + 0.001;
  kept = x;
}

}  // namespace brigade::lab::bench
