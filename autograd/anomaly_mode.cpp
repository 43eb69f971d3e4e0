// The per-thread switch of anomaly mode, and its guard.
#include <brigade/autograd/anomaly_mode.h>

#include <utility>

namespace brigade::autograd {

namespace {
constinit thread_local bool enabled_here = false;
}  // namespace

bool AnomalyMode::is_enabled() noexcept { return enabled_here; }
void AnomalyMode::set_enabled(bool enabled) noexcept { enabled_here = enabled; }

DetectAnomalyGuard::DetectAnomalyGuard() noexcept : previous_(std::exchange(enabled_here, true)) {}
DetectAnomalyGuard::~DetectAnomalyGuard() { enabled_here = previous_; }

}  // namespace brigade::autograd
