// Runs the threads of a block, one block after the other, on one OS thread.
//
// A kernel thread runs until it waits, at a barrier or for other lanes of its warp. The runner then continues with a
// thread that can run: a new one, on a free stack, or one whose wait is over. A thread that never waits leaves its
// stack to the next one, so a kernel without barriers needs a single stack and no switches. The last thread to arrive
// releases the others. If no thread can run and not all are done, that is a deadlock.
//
// The first rule violation fails the block: the waiting threads are resumed one by one to unwind their stacks.
#pragma once

#include <simt/detail/current.h>
#include <simt/launch.h>

#include "fiber.h"
#include "shared_memory.h"

#include <cstdint>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace simt::detail {

constexpr unsigned kWarpSize = 32;
constexpr unsigned kMaximalThreads = 1024;

class BlockRunner {
 public:
  BlockRunner();
  ~BlockRunner();

  void begin_launch(const Launch& launch);
  void run_block(uint3 block);  // throws Error
  void end_launch();

  // Calls made by the running thread. They may throw, and may return on this stack much later.
  unsigned barrier(bool predicate, const Location& where);
  uint64_t warp(WarpOperation operation, unsigned mask, uint64_t bits, unsigned source, const Location& where);
  void* shared_array(const void* site, size_t bytes, const char* name, const Location& where);
  void* dynamic_shared() const { return shared_.dynamic(); }
  void fence();
  // Describes a violation by a thread, as the text of an Error.
  std::string describe(unsigned thread, const std::string& message, const Location& where) const;

 private:
  enum class State : uint8_t { New, Running, AtBarrier, InWarp, Done };

  struct Stack {
    std::unique_ptr<Fiber> fiber;
    BlockRunner* runner;
    unsigned index;
  };

  struct Thread {
    State state = State::New;
    uint3 index{};
    Stack* stack = nullptr;
    void* tsan = nullptr;  // its logical thread
    Location where;        // of the call it waits in
    // The pending warp operation.
    WarpOperation operation{};
    unsigned mask = 0;
    unsigned source = 0;
    uint64_t bits = 0;
    uint64_t result = 0;
  };

  struct Warp {
    unsigned present = 0;  // lanes that exist in the block
    unsigned exited = 0;
    unsigned waiting = 0;  // in a warp operation
  };

  // Thrown through the stacks of waiting threads when the block fails.
  struct Unwind {};

  // block.cpp: the life of a thread, and the choice of the next one.
  [[noreturn]] void run_threads(Stack& stack);
  void run_thread(unsigned thread, Stack& stack);
  void finish_thread(unsigned thread);
  void make_current(unsigned thread);
  void wait();
  void leave(Fiber& from, Stack* own);
  Stack* next_stack();
  Stack* next_of_warp();
  Stack& free_stack();
  Stack& stack_at(size_t index);
  unsigned take_ready();
  void make_ready(unsigned thread);
  void let_others_run();
  void unwind_waiting();
  void report_deadlock();
  [[noreturn]] void fail(const std::string& message);
  void set_failure(const std::string& message);
  std::string name(unsigned thread) const;
  std::string place(const Location& where) const;
  bool random() const;
  bool strict() const;

  // barrier.cpp
  void check_convergence(const Location& where);
  void release_barrier();
  void check_barrier_exit(unsigned thread);

  // warp.cpp
  void check_mask(Warp& warp, unsigned thread);
  bool complete_if_all_arrived(Warp& warp, unsigned first_lane, unsigned mask);
  void check_warp_exit(unsigned thread);

  // Thread sanitizer: kernel code runs as the logical thread of the kernel thread, the scheduler as that of the OS
  // thread.
  void as_scheduler();
  void as_thread(unsigned thread);
  // Everything that these threads did so far happens before everything that they do from here on.
  void order_threads(const std::vector<unsigned>& threads, void* token);

  const Launch* launch_ = nullptr;
  SharedMemory shared_;
  Fiber scheduler_;
  Stack* running_ = nullptr;  // nullptr: the scheduler's
  std::deque<Stack> stacks_;  // a deque keeps addresses stable
  size_t stack_bytes_ = 0;
  std::vector<Stack*> free_stacks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;  // in which threads start
  unsigned warp_ = 0;            // Order::Warps: the running warp
  unsigned started_ = 0;
  unsigned alive_ = 0;
  std::deque<unsigned> ready_;
  int resuming_ = -1;  // the thread to make current after a switch, or -1
  std::mt19937_64 random_;
  std::string failure_;

  unsigned at_barrier_ = 0;
  unsigned barrier_votes_ = 0;
  unsigned barrier_result_ = 0;
  unsigned first_at_barrier_ = 0;

  void* tsan_scheduler_ = nullptr;
  std::vector<void*> tsan_threads_;
  // Addresses by which the thread sanitizer orders accesses.
  char block_begins_ = 0, block_ends_ = 0, barrier_token_ = 0;
  char warp_tokens_[kMaximalThreads] = {};
  std::vector<unsigned> group_;  // scratch, reused
};

}  // namespace simt::detail
