// The children of this process, those that it has adopted as a subreaper among them.
#pragma once

#include <sys/types.h>

namespace brigade::dist {

struct OwnChild {
  pid_t process;
  const char* name;  // as the system writes it, 15 bytes at most; valid during the call
};

// Calls visit(context, child) for each that has not ended. System calls only, so that it may be
// used after the fork of a program with threads. Finds nothing where /proc is not mounted.
void visit_own_children(void (*visit)(void*, const OwnChild&), void* context) noexcept;

template <class F>
void for_each_own_child(F f) noexcept {
  visit_own_children([](void* context, const OwnChild& child) { (*static_cast<F*>(context))(child); }, &f);
}

}  // namespace brigade::dist
