// Enters and leaves the current module call, and keeps one copy of each path for the whole process.
#include <brigade/autograd/scope.h>

#include <brigade/autograd/detail/thread_state.h>
#include <brigade/autograd/tape.h>

#include <mutex>
#include <unordered_set>

namespace brigade::autograd {

ScopeGuard::ScopeGuard(const std::string* path, const char* type, SourceLocation where, const void* module,
                       uint64_t unregistered) noexcept
    : previous_(detail::current_call) {
  if (Tape* tape = Tape::current())
    detail::current_call = tape->enter({path, type, module, where, previous_, 0, unregistered});
}

ScopeGuard::~ScopeGuard() { detail::current_call = previous_; }

const std::string* intern(const std::string& text) {
  static std::mutex mutex;
  // Never destroyed: records may be read until the process ends.
  static auto* const texts = new std::unordered_set<std::string>;
  std::lock_guard lock(mutex);
  return &*texts->insert(text).first;
}

}  // namespace brigade::autograd
