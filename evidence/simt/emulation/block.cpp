#include "block.h"

#include <simt/error.h>
#include <simt/options.h>

#include "tsan.h"

#include <algorithm>
#include <numeric>

namespace simt::detail {

BlockRunner::BlockRunner() = default;

BlockRunner::~BlockRunner() {
  for (void* logical : tsan_threads_)
    __tsan_destroy_fiber(logical);
}

bool BlockRunner::random() const { return options().order == Order::Random; }
bool BlockRunner::strict() const { return options().strict; }

void BlockRunner::begin_launch(const Launch& launch) {
  launch_ = &launch;
  const dim3 size = launch.block;
  const unsigned count = size.x * size.y * size.z;
  threads_.resize(count);
  warps_.resize((count + kWarpSize - 1) / kWarpSize);
  order_.resize(count);
  random_.seed(options().seed);
  for (unsigned t = 0; t < count; ++t)
    threads_[t].index = {t % size.x, t / size.x % size.y, t / (size.x * size.y)};
  std::iota(order_.begin(), order_.end(), 0U);
  if (options().order == Order::Reverse) std::reverse(order_.begin(), order_.end());
  if (stack_bytes_ != options().stack_bytes) {
    stack_bytes_ = options().stack_bytes;
    free_stacks_.clear();
    stacks_.clear();
  }
  if (tsan::on()) {
    while (tsan_threads_.size() < count)
      tsan_threads_.push_back(__tsan_create_fiber(0));
    for (unsigned t = 0; t < count; ++t)
      threads_[t].tsan = tsan_threads_[t];
  }
  current.block_size = size;
  current.grid_size = launch.grid;
  current.runner = this;
}

void BlockRunner::end_launch() {
  shared_.end_launch();
  current.runner = nullptr;
  launch_ = nullptr;
}

void BlockRunner::run_block(uint3 block) {
  const unsigned count = static_cast<unsigned>(threads_.size());
  current.block = block;
  failure_.clear();
  started_ = 0;
  alive_ = count;
  at_barrier_ = barrier_votes_ = 0;
  ready_.clear();
  for (Thread& thread : threads_)
    thread.state = State::New;
  for (unsigned w = 0; w < warps_.size(); ++w) {
    const unsigned lanes = std::min(kWarpSize, count - w * kWarpSize);
    warps_[w] = {lanes == kWarpSize ? ~0U : (1U << lanes) - 1, 0, 0};
  }
  if (random()) std::shuffle(order_.begin(), order_.end(), random_);
  if (options().order == Order::Warps) {
    // Warps start as a whole and in order, beginning with a random one.
    std::iota(order_.begin(), order_.end(), 0U);
    warp_ = static_cast<unsigned>(random_() % warps_.size());
    std::rotate(order_.begin(), order_.begin() + warp_ * kWarpSize, order_.end());
  }
  shared_.begin_block(launch_->shared_bytes);
  if (tsan::on()) {
    tsan_scheduler_ = __tsan_get_current_fiber();
    __tsan_release(&block_begins_);
  }

  leave(scheduler_, nullptr);  // returns when no thread can run

  if (failure_.empty() && alive_ > 0) report_deadlock();
  if (!failure_.empty()) unwind_waiting();
  if (tsan::on()) __tsan_acquire(&block_ends_);
  shared_.end_block();
  if (!failure_.empty()) throw Error(failure_);
}

// The main loop of each stack.
void BlockRunner::run_threads(Stack& stack) {
  for (;;) {
    while (failure_.empty() && started_ < threads_.size()) {
      run_thread(order_[started_++], stack);
      // The thread sanitizer would treat a stack that two threads use as shared data.
      if (tsan::on() || (!ready_.empty() && (random() || options().order == Order::Warps))) break;
    }
    if (!tsan::on()) free_stacks_.push_back(&stack);
    leave(*stack.fiber, &stack);
  }
}

void BlockRunner::run_thread(unsigned thread, Stack& stack) {
  threads_[thread].state = State::Running;
  threads_[thread].stack = &stack;
  make_current(thread);
  as_thread(thread);
  if (tsan::on()) __tsan_acquire(&block_begins_);
  std::string failure;
  bool threw = false;
  try {
    launch_->body();
  } catch (const Unwind&) {
    // failure_ holds the reason.
  } catch (const Error& error) {
    failure = error.what();
    threw = true;
  } catch (const std::exception& error) {
    failure = std::string("kernel ") + launch_->name + ", " + name(thread) + ": exception: " + error.what();
    threw = true;
  }
  if (tsan::on()) __tsan_release(&block_ends_);
  as_scheduler();
  if (threw) {
    if (tsan::on()) __tsan_acquire(&block_ends_);
    set_failure(failure);
  }
  if (failure_.empty()) finish_thread(thread);
  threads_[thread].state = State::Done;
}

void BlockRunner::finish_thread(unsigned thread) {
  threads_[thread].state = State::Done;
  --alive_;
  check_barrier_exit(thread);
  check_warp_exit(thread);
}

void BlockRunner::make_current(unsigned thread) {
  current.index = thread;
  current.thread = threads_[thread].index;
}

// Blocks the running thread until another thread makes it ready.
void BlockRunner::wait() {
  Stack* const stack = threads_[current.index].stack;
  leave(*stack->fiber, stack);
  if (failure_.empty()) return;
  as_thread(current.index);  // the stack unwinds as part of the kernel thread
  throw Unwind();
}

// In random order, the last thread to arrive need not be the first to continue.
void BlockRunner::let_others_run() {
  if (!random()) return;
  make_ready(current.index);
  wait();
}

// Switches to the next runnable thread, or to the scheduler if there is none; returns on the next switch to `from`.
void BlockRunner::leave(Fiber& from, Stack* own) {
  Stack* const next = next_stack();
  if (next != own) {
    running_ = next;
    from.switch_to(next == nullptr ? scheduler_ : *next->fiber);
    running_ = own;
  }
  if (resuming_ >= 0) {
    make_current(static_cast<unsigned>(resuming_));
    resuming_ = -1;
  }
}

BlockRunner::Stack* BlockRunner::next_stack() {
  if (!failure_.empty()) return nullptr;
  if (options().order == Order::Warps) return next_of_warp();
  bool start = started_ < threads_.size();
  // Starts new threads first, except at random in random order, so that all reach the first barrier after one round.
  if (start && !ready_.empty() && random()) start = (random_() & 1) != 0;
  if (start) return &free_stack();
  if (ready_.empty()) return nullptr;
  const unsigned thread = take_ready();
  resuming_ = static_cast<int>(thread);
  return threads_[thread].stack;
}

BlockRunner::Stack* BlockRunner::next_of_warp() {
  const auto runs = [this](unsigned thread) { return thread / kWarpSize == warp_; };
  for (;;) {
    const bool start = started_ < threads_.size();
    if (start && runs(order_[started_])) return &free_stack();
    const auto found = std::find_if(ready_.begin(), ready_.end(), runs);
    if (found != ready_.end()) {
      const unsigned thread = *found;
      ready_.erase(found);
      resuming_ = static_cast<int>(thread);
      return threads_[thread].stack;
    }
    if (!start && ready_.empty()) return nullptr;
    const bool fresh = start && (ready_.empty() || (random_() & 1) != 0);
    warp_ = (fresh ? order_[started_] : ready_[random_() % ready_.size()]) / kWarpSize;
  }
}

BlockRunner::Stack& BlockRunner::free_stack() {
  if (tsan::on()) return stack_at(order_[started_]);
  if (free_stacks_.empty()) return stack_at(stacks_.size());
  Stack* const stack = free_stacks_.back();
  free_stacks_.pop_back();
  return *stack;
}

BlockRunner::Stack& BlockRunner::stack_at(size_t index) {
  while (stacks_.size() <= index) {
    Stack& stack = stacks_.emplace_back();
    stack.runner = this;
    stack.fiber = std::make_unique<Fiber>(
        stack_bytes_, stacks_.size(),
        [](void* argument) {
          Stack& self = *static_cast<Stack*>(argument);
          self.runner->run_threads(self);
        },
        &stack);
  }
  return stacks_[index];
}

void BlockRunner::make_ready(unsigned thread) {
  threads_[thread].state = State::Running;
  ready_.push_back(thread);
}

unsigned BlockRunner::take_ready() {
  if (random()) std::swap(ready_.front(), ready_[random_() % ready_.size()]);
  const unsigned thread = ready_.front();
  ready_.pop_front();
  return thread;
}

void BlockRunner::unwind_waiting() {
  for (unsigned t = 0; t < threads_.size(); ++t) {
    if (threads_[t].state == State::New || threads_[t].state == State::Done) continue;
    resuming_ = static_cast<int>(t);
    running_ = threads_[t].stack;
    scheduler_.switch_to(*threads_[t].stack->fiber);
    running_ = nullptr;
    resuming_ = -1;
  }
}

void BlockRunner::report_deadlock() {
  std::string message;
  const auto add = [&](State state, const char* what) {
    const auto found =
        std::find_if(threads_.begin(), threads_.end(), [=](const Thread& t) { return t.state == state; });
    if (found == threads_.end()) return;
    const unsigned thread = static_cast<unsigned>(found - threads_.begin());
    message += (message.empty() ? "" : ", ") + name(thread) + " waits " + what + " at " + place(found->where);
  };
  add(State::AtBarrier, "for the block");
  add(State::InWarp, "for its warp");
  set_failure(std::string("kernel ") + launch_->name + ": deadlock: " + message);
}

// Messages

std::string BlockRunner::name(unsigned thread) const {
  const auto text = [](uint3 v) {
    return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
  };
  return "thread " + text(threads_[thread].index) + " of block " + text(current.block);
}

std::string BlockRunner::place(const Location& where) const {
  const std::string path = where.file_name();
  return path.substr(path.find_last_of('/') + 1) + ":" + std::to_string(where.line());
}

std::string BlockRunner::describe(unsigned thread, const std::string& message, const Location& where) const {
  return std::string("kernel ") + launch_->name + ", " + name(thread) + ", " + place(where) + ": " + message;
}

void BlockRunner::set_failure(const std::string& message) {
  if (failure_.empty()) failure_ = message;
}

void BlockRunner::fail(const std::string& message) {
  set_failure(message);
  // The message and its parts are destroyed while the stack unwinds as the kernel thread.
  if (tsan::on()) __tsan_release(&block_begins_);
  as_thread(current.index);
  if (tsan::on()) __tsan_acquire(&block_begins_);
  throw Unwind();
}

// The thread sanitizer

void BlockRunner::as_scheduler() {
  if (tsan::on()) tsan::become(tsan_scheduler_);
}

void BlockRunner::as_thread(unsigned thread) {
  if (tsan::on()) tsan::become(threads_[thread].tsan);
}

void BlockRunner::order_threads(const std::vector<unsigned>& threads, void* token) {
  if (!tsan::on()) return;
  for (const unsigned thread : threads) {
    as_thread(thread);
    __tsan_release(token);
  }
  for (const unsigned thread : threads) {
    as_thread(thread);
    __tsan_acquire(token);
  }
  as_scheduler();
}

// Calls of the device language

void* BlockRunner::shared_array(const void* site, size_t bytes, const char* name, const Location& where) {
  const unsigned self = current.index;
  as_scheduler();
  void* const data = shared_.array(site, bytes);
  if (data == nullptr)
    fail(describe(self, std::string("the block's static shared memory exceeds 48 KiB with array ") + name, where));
  as_thread(self);
  return data;
}

void BlockRunner::fence() {
  if (!tsan::on()) return;
  static char token = 0;
  __tsan_release(&token);
  __tsan_acquire(&token);
}

namespace {
BlockRunner& runner(const Location& where) {
  if (current.runner == nullptr)
    throw Error(std::string("line ") + std::to_string(where.line()) + " of " + where.file_name() +
                ": device code called outside of simt::launch");
  return *current.runner;
}
}  // namespace

unsigned barrier(bool predicate, const Location& where) { return runner(where).barrier(predicate, where); }

uint64_t warp(WarpOperation operation, unsigned mask, uint64_t bits, unsigned source, const Location& where) {
  return runner(where).warp(operation, mask, bits, source, where);
}

void* shared_array(const void* site, size_t bytes, const char* name, const Location& where) {
  return runner(where).shared_array(site, bytes, name, where);
}

void* dynamic_shared() { return runner(Location::current()).dynamic_shared(); }

void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (current.runner != nullptr) current.runner->fence();
}

void fail(const std::string& message, const Location& where) {
  throw Error(runner(where).describe(current.index, message, where));
}

}  // namespace simt::detail
