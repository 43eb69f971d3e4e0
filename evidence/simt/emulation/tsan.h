// How the thread sanitizer sees a kernel: each thread of a block is a separate logical thread ("fiber" in its
// interface), barriers order them, and two accesses without a barrier in between are a race under any schedule.
//
// The files of this folder are compiled without the sanitizer, because the scheduler switches logical threads in the
// middle of functions. Its presence is therefore checked at run time: its functions are weak symbols.
#pragma once

extern "C" {
[[gnu::weak]] void* __tsan_get_current_fiber();
[[gnu::weak]] void* __tsan_create_fiber(unsigned flags);
[[gnu::weak]] void __tsan_destroy_fiber(void* fiber);
[[gnu::weak]] void __tsan_switch_to_fiber(void* fiber, unsigned flags);
[[gnu::weak]] void __tsan_acquire(void* address);
[[gnu::weak]] void __tsan_release(void* address);
[[gnu::weak]] void AnnotateIgnoreWritesBegin(const char* file, int line);
[[gnu::weak]] void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace simt::detail::tsan {

inline bool on() { return __tsan_get_current_fiber != nullptr; }

// The flag that keeps a switch from ordering accesses.
constexpr unsigned kNoOrder = 1;

inline void become(void* logical_thread) { __tsan_switch_to_fiber(logical_thread, kNoOrder); }

}  // namespace simt::detail::tsan
