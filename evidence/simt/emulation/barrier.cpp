// __syncthreads: the last thread of the block to arrive releases the others.
#include "block.h"

#include <algorithm>

namespace simt::detail {

unsigned BlockRunner::barrier(bool predicate, const Location& where) {
  const unsigned self = current.index;
  as_scheduler();
  if (strict()) check_convergence(where);
  if (at_barrier_ == 0) first_at_barrier_ = self;
  barrier_votes_ += predicate ? 1 : 0;
  threads_[self].where = where;
  threads_[self].state = State::AtBarrier;
  ++at_barrier_;
  if (at_barrier_ == alive_) {
    release_barrier();
    threads_[self].state = State::Running;
    let_others_run();
  } else {
    wait();
  }
  as_thread(self);
  // All threads read the result of this barrier before any thread can complete the next one.
  return barrier_result_;
}

// Checks that all threads of the block reach the same barrier.
void BlockRunner::check_convergence(const Location& where) {
  if (alive_ < threads_.size()) {
    const auto exited = std::find_if(threads_.begin(), threads_.end(),
                                     [](const Thread& thread) { return thread.state == State::Done; });
    fail(describe(current.index,
                  "waits at a barrier, but " + name(static_cast<unsigned>(exited - threads_.begin())) + " has exited",
                  where));
  }
  if (at_barrier_ == 0) return;
  const Location& first = threads_[first_at_barrier_].where;
  if (first.line() != where.line() || first.column() != where.column())
    fail(describe(current.index, "divergent barrier: " + name(first_at_barrier_) + " waits at " + place(first), where));
}

// The calling thread continues; all other waiting threads become ready.
void BlockRunner::release_barrier() {
  barrier_result_ = barrier_votes_;
  barrier_votes_ = at_barrier_ = 0;
  group_.clear();
  for (const unsigned thread : order_) {
    if (threads_[thread].state != State::AtBarrier) continue;
    group_.push_back(thread);
    if (thread != current.index) make_ready(thread);
  }
  order_threads(group_, &barrier_token_);
}

void BlockRunner::check_barrier_exit(unsigned thread) {
  if (at_barrier_ == 0) return;
  if (strict()) {
    set_failure(std::string("kernel ") + launch_->name + ", " + name(thread) + " exited while " +
                name(first_at_barrier_) + " waits at the barrier of " + place(threads_[first_at_barrier_].where));
  } else if (at_barrier_ == alive_) {
    release_barrier();  // the hardware does not count threads that have exited
  }
}

}  // namespace simt::detail
