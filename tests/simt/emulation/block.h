// Runs the threads of a block, one block after the other, on one OS thread.
//
// A thread of the kernel runs until it waits: at a barrier, or for the other lanes of its warp. Then the runner goes on
// with a thread that can run: a new one, on a stack that is free, or one whose wait is over. A thread that never waits
// leaves its stack to the next one, so that a kernel without barriers needs a single stack and no switch. The last one
// to arrive releases the others. When nobody can run and not all are done, that is a deadlock.
//
// The first rule that is broken fails the block: the threads that wait are resumed one by one to unwind their stacks.
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

  // Calls of the thread that runs. They may throw, and may return on this stack much later.
  unsigned barrier(bool predicate, const Location& where);
  uint64_t warp(WarpOperation operation, unsigned mask, uint64_t bits, unsigned source, const Location& where);
  void* shared_array(const void* site, size_t bytes, const char* name, const Location& where);
  void* dynamic_shared() const { return shared_.dynamic(); }
  void fence();
  // What is wrong with a thread: the text of an Error.
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
    Location where;        // of the call that it waits in
    // Of its warp operation.
    WarpOperation operation{};
    unsigned mask = 0;
    unsigned source = 0;
    uint64_t bits = 0;
    uint64_t result = 0;
  };

  struct Warp {
    unsigned present = 0;  // lanes that the block has
    unsigned exited = 0;
    unsigned waiting = 0;  // in a warp operation
  };

  // Thrown through the stacks of threads that wait when the block fails.
  struct Unwind {};

  // block.cpp: the life of a thread, and who runs next.
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

  // The thread sanitizer: kernel code runs as the thread's logical thread, the scheduler as the OS thread's.
  void as_scheduler();
  void as_thread(unsigned thread);
  // What each of the threads did before is before what each does after.
  void order_threads(const std::vector<unsigned>& threads, void* token);

  const Launch* launch_ = nullptr;
  SharedMemory shared_;
  Fiber scheduler_;
  Stack* running_ = nullptr;  // nullptr: the scheduler's own
  std::deque<Stack> stacks_;  // addresses stay
  size_t stack_bytes_ = 0;
  std::vector<Stack*> free_stacks_;
  std::vector<Thread> threads_;
  std::vector<Warp> warps_;
  std::vector<unsigned> order_;  // in which the threads start
  unsigned warp_ = 0;            // Order::Warps: the one that runs
  unsigned started_ = 0;
  unsigned alive_ = 0;
  std::deque<unsigned> ready_;
  int resuming_ = -1;  // the thread to make current after a switch
  std::mt19937_64 random_;
  std::string failure_;

  unsigned at_barrier_ = 0;
  unsigned barrier_votes_ = 0;
  unsigned barrier_result_ = 0;
  unsigned first_at_barrier_ = 0;

  void* tsan_scheduler_ = nullptr;
  std::vector<void*> tsan_threads_;
  // The thread sanitizer orders by addresses.
  char block_begins_ = 0, block_ends_ = 0, barrier_token_ = 0;
  char warp_tokens_[kMaximalThreads] = {};
  std::vector<unsigned> group_;  // reused
};

}  // namespace simt::detail
