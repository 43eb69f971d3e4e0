// Guards: each saves the previous state of its thread. grad_mode.h remembers where recording was switched off; running
// backwards are counted for the process and each thread.
#include <brigade/autograd/grad_mode.h>

#include <brigade/autograd/detail/thread_state.h>

#include <atomic>
#include <utility>

namespace brigade {

// --- The guards: each saves the previous state and the line where recording was switched off.

namespace {
using autograd::detail::recording;
thread_local SourceLocation off_since;
}  // namespace

namespace autograd {
SourceLocation GradMode::disabled_at() noexcept { return detail::recording ? SourceLocation() : off_since; }
}  // namespace autograd

NoGradGuard::NoGradGuard(SourceLocation where) noexcept : previous_(recording), previous_where_(off_since) {
  recording = false;
  off_since = where;
}
NoGradGuard::~NoGradGuard() {
  recording = previous_;
  off_since = previous_where_;
}

EnableGradGuard::EnableGradGuard() noexcept : previous_(recording), previous_where_(off_since) { recording = true; }
EnableGradGuard::~EnableGradGuard() {
  recording = previous_;
  off_since = previous_where_;
}

AutoGradMode::AutoGradMode(bool enabled, SourceLocation where) noexcept
    : previous_(recording), previous_where_(off_since) {
  if (recording && !enabled) off_since = where;
  recording = enabled;
}
AutoGradMode::~AutoGradMode() {
  recording = previous_;
  off_since = previous_where_;
}

}  // namespace brigade

namespace brigade::autograd {

// --- The per-thread switch of anomaly mode, and its guard.

namespace {
constinit thread_local bool enabled_here = false;
}  // namespace

bool AnomalyMode::is_enabled() noexcept { return enabled_here; }
void AnomalyMode::set_enabled(bool enabled) noexcept { enabled_here = enabled; }

DetectAnomalyGuard::DetectAnomalyGuard() noexcept : previous_(std::exchange(enabled_here, true)) {}
DetectAnomalyGuard::~DetectAnomalyGuard() { enabled_here = previous_; }

}  // namespace brigade::autograd

namespace brigade::autograd::detail {

// --- Counts the running backwards of the process and of each thread.

namespace {

std::atomic<int> of_process{0};
thread_local int of_thread = 0;

}  // namespace

BackwardUnderWay::BackwardUnderWay() noexcept {
  ++of_thread;
  of_process.fetch_add(1, std::memory_order_relaxed);
}

BackwardUnderWay::~BackwardUnderWay() {
  --of_thread;
  of_process.fetch_sub(1, std::memory_order_relaxed);
}

bool backward_elsewhere() noexcept { return of_process.load(std::memory_order_relaxed) > of_thread; }

}  // namespace brigade::autograd::detail
