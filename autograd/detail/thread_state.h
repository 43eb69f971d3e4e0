// Autograd's per-thread state: the running call and line, sequence numbers, running backwards.
#pragma once

#include <brigade/autograd/node.h>
#include <brigade/core/tensor.h>

#include <cstdint>

namespace brigade::autograd::detail {

// The module call that is running (an index of the tape), 0 when none.
BRIGADE_INITIAL_EXEC inline constinit thread_local uint32_t current_call = 0;

// The line of the operation whose backward is being recorded; operations recorded there without their own line get this
// one.
BRIGADE_INITIAL_EXEC inline constinit thread_local SourceLocation running_where;

// --- Sequence numbers of nodes. A node has a higher number than the nodes that made its inputs, even if other threads
// recorded them: each thread has a clock, which an input from a later time advances (Lamport 1978, "Time, Clocks, and
// the Ordering of Events in a Distributed System"). The low bits hold the thread, so that two threads with the same
// time produce different numbers.

// More threads than any program records on at once.
inline constexpr uint64_t kThreadsInSequence = uint64_t{1} << 12;

// The number of the next node that this thread records; 0 before its first.
BRIGADE_INITIAL_EXEC inline constinit thread_local uint64_t next_sequence = 0;
uint64_t first_sequence() noexcept;

inline uint64_t peek_sequence() noexcept {
  if (next_sequence == 0) [[unlikely]]
    next_sequence = first_sequence();
  return next_sequence;
}

// Whether `sequence` was recorded by the thread whose next number was `from`, after that reading.
inline bool is_recorded_since(uint64_t sequence, uint64_t from) noexcept {
  return sequence >= from && sequence % kThreadsInSequence == from % kThreadsInSequence;
}

// Takes a number for a node whose edges are set.
inline uint64_t take_sequence(const Node& node) noexcept {
  uint64_t taken = peek_sequence();
  for (const Edge& edge : node.edges) {
    if (edge.node && edge.node->sequence >= taken) [[unlikely]] {
      const uint64_t later = edge.node->sequence / kThreadsInSequence + 1;
      taken = later * kThreadsInSequence + taken % kThreadsInSequence;
    }
  }
  next_sequence = taken + kThreadsInSequence;
  return taken;
}

// --- Tracks running backwards, so that another thread can see that ending the process would lose them.

// RAII: marks a backward as running on its thread.
class BackwardUnderWay {
 public:
  BackwardUnderWay() noexcept;
  ~BackwardUnderWay();
  BackwardUnderWay(const BackwardUnderWay&) = delete;
  BackwardUnderWay& operator=(const BackwardUnderWay&) = delete;
};

// Whether a backward runs on a thread other than the calling one.
bool backward_elsewhere() noexcept;

}  // namespace brigade::autograd::detail
