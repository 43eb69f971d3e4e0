// The guards: each saves the previous state and the line where recording was switched off.
#include <brigade/autograd/grad_mode.h>

namespace brigade {

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
