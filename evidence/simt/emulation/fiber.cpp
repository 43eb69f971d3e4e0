#include "fiber.h"

#include <simt/detail/sanitizers.h>

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <new>

#if SIMT_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !SIMT_USE_UCONTEXT
// Saves the callee-saved state on the old stack, swaps the stack pointers, and restores the state from the new stack.
extern "C" void simt_switch_stack(void** old_stack, void* new_stack);
asm(R"(
.text
.globl simt_switch_stack
.hidden simt_switch_stack
.type simt_switch_stack, @function
simt_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size simt_switch_stack, .-simt_switch_stack
)");
#endif

namespace simt::detail {
namespace {
// The fiber that is being switched to; a new fiber finds itself through it.
thread_local Fiber* entering = nullptr;
}  // namespace

Fiber::Fiber() {
#if SIMT_ASAN
  pthread_attr_t attributes;
  pthread_getattr_np(pthread_self(), &attributes);
  void* bottom = nullptr;
  pthread_attr_getstack(&attributes, &bottom, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_bottom_ = bottom;
#endif
}

Fiber::Fiber(size_t stack_bytes, size_t color, Entry entry, void* argument) : entry_(entry), argument_(argument) {
  constexpr size_t kColors = 32;
  constexpr size_t kColorBytes = 192;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  mapping_bytes_ = page + (stack_bytes + kColors * kColorBytes + page - 1) / page * page;
  void* const mapping =
      mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED || mprotect(mapping, page, PROT_NONE) != 0) throw std::bad_alloc();
  mapping_ = static_cast<char*>(mapping);
  stack_bottom_ = mapping_ + page;
  stack_bytes_ = mapping_bytes_ - page;
#if SIMT_ASAN
  // Clears the poison left by an earlier stack at these addresses.
  ASAN_UNPOISON_MEMORY_REGION(stack_bottom_, stack_bytes_);
#endif
  const size_t shift = color % kColors * kColorBytes;
#if SIMT_USE_UCONTEXT
  getcontext(&context_);
  context_.uc_stack.ss_sp = mapping_ + page;
  context_.uc_stack.ss_size = stack_bytes_ - shift;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fiber::start, 0);
#else
  // The frame that simt_switch_stack restores: six registers and the return address. Above it is a null return address,
  // which ends a debugger's stack walk and aligns the stack as at function entry.
  uintptr_t* top = reinterpret_cast<uintptr_t*>(mapping_ + mapping_bytes_ - shift);
  *--top = 0;
  *--top = reinterpret_cast<uintptr_t>(&Fiber::start);
  for (int i = 0; i < 6; ++i)
    *--top = 0;
  stack_pointer_ = top;
#endif
}

Fiber::~Fiber() {
  if (mapping_ == nullptr) return;
#if SIMT_ASAN
  // The next mapping at these addresses may be the memory of a thread, for which the sanitizer clears only the stack.
  ASAN_UNPOISON_MEMORY_REGION(stack_bottom_, stack_bytes_);
#endif
  munmap(mapping_, mapping_bytes_);
}

void Fiber::switch_to(Fiber& other) {
  entering = &other;
#if SIMT_ASAN
  __sanitizer_start_switch_fiber(&fake_stack_, other.stack_bottom_, other.stack_bytes_);
#endif
#if SIMT_USE_UCONTEXT
  swapcontext(&context_, &other.context_);
#else
  simt_switch_stack(&stack_pointer_, other.stack_pointer_);
#endif
#if SIMT_ASAN
  __sanitizer_finish_switch_fiber(fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::start() {
  Fiber& self = *entering;
#if SIMT_ASAN
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
  self.entry_(self.argument_);
  __builtin_unreachable();
}

}  // namespace simt::detail
