// The sanitizer that this file is compiled with.
#pragma once

#if defined(__has_feature)
#define SIMT_HAS_FEATURE(x) __has_feature(x)
#else
#define SIMT_HAS_FEATURE(x) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || SIMT_HAS_FEATURE(address_sanitizer)
#define SIMT_ASAN 1
#else
#define SIMT_ASAN 0
#endif

#if defined(__SANITIZE_THREAD__) || SIMT_HAS_FEATURE(thread_sanitizer)
#define SIMT_TSAN 1
// The scheduler writes this data and the kernel's threads read it. It is not kernel data, so the sanitizer must not
// report it as a race.
#define SIMT_UNSEEN_BY_TSAN __attribute__((no_sanitize("thread"), noinline))
#else
#define SIMT_TSAN 0
#define SIMT_UNSEEN_BY_TSAN
#endif
