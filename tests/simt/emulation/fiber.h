// A fiber: a stack and a place to go on. Switching costs some 10 ns, which is what makes a barrier of 256 threads
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

  // Stands for the OS thread's own stack: something to switch away from and back to.
  Fiber();

  // Runs entry(argument), which never returns, when it is first switched to. `color` shifts the start of the stack: hot
  // ends that share cache sets would make switching several times slower.
  Fiber(size_t stack_bytes, size_t color, Entry entry, void* argument);

  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Leaves this fiber, which must be the running one, for the other; returns when something switches back.
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
  char* mapping_ = nullptr;  // the guard page and the stack
  size_t mapping_bytes_ = 0;
  // For the address sanitizer.
  const void* stack_bottom_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace simt::detail
