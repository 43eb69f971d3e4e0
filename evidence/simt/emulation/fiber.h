// A fiber: a stack and a position to continue from. A switch costs about 10 ns, which keeps a barrier of 256 threads
// cheap.
#pragma once

#include <cstddef>

#if !defined(__x86_64__) || defined(SIMT_UCONTEXT)
#define SIMT_USE_UCONTEXT 1
#include <ucontext.h>
#else
#define SIMT_USE_UCONTEXT 0
#endif

namespace simt::detail {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  // Represents the OS thread's own stack, so that fibers can switch back to it.
  Fiber();

  // Runs entry(argument), which must not return, on the first switch to the fiber. `color` shifts the start of the
  // stack: if the hot ends of stacks shared cache sets, switching would be several times slower.
  Fiber(size_t stack_bytes, size_t color, Entry entry, void* argument);

  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Switches from this fiber, which must be the running one, to `other`; returns on the next switch back.
  void switch_to(Fiber& other);

 private:
  static void start();

#if SIMT_USE_UCONTEXT
  ucontext_t context_{};
#else
  void* stack_pointer_ = nullptr;
#endif
  Entry entry_ = nullptr;
  void* argument_ = nullptr;
  char* mapping_ = nullptr;  // guard page and stack
  size_t mapping_bytes_ = 0;
  // For the address sanitizer.
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace simt::detail
