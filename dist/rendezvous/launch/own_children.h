// The children of this process, including those that it has adopted as a subreaper.
#pragma once

#include <sys/types.h>

namespace brigade::dist {

struct OwnChild {
  pid_t process;
  const char* name;  // as in /proc, at most 15 bytes; valid during the call
};

// Calls visit(context, child) for each child that has not ended. Uses system calls only, so that it may be called after
// the fork of a program with threads. Finds nothing when /proc is not mounted.
void visit_own_children(void (*visit)(void*, const OwnChild&), void* context) noexcept;

template <class F>
void for_each_own_child(F f) noexcept {
  visit_own_children([](void* context, const OwnChild& child) { (*static_cast<F*>(context))(child); }, &f);
}

}  // namespace brigade::dist
