// The thread sanitizer's view of a kernel: each of a block's threads is a logical thread ("fiber" in its interface) of
// its own, barriers order them, and two accesses without a barrier between them are a race, whatever the schedule was.
//
// The files of this folder are compiled without the sanitizer, because the scheduler switches logical threads in the
// middle of functions. Whether it is there is therefore asked at run time: its functions are weak.
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

// Switching alone orders nothing.
constexpr unsigned kNoOrder = 1;

inline void become(void* logical_thread) { __tsan_switch_to_fiber(logical_thread, kNoOrder); }

}  // namespace simt::detail::tsan
