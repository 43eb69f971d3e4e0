// Numbers of nodes. A node has a higher number than the nodes that made its inputs, also where other threads recorded
// those: each thread has a clock, which an input from a later time puts forward (Lamport 1978, "Time, Clocks, and the
// Ordering of Events in a Distributed System"). The thread is in the low bits, so that two threads at one time make two
// numbers.
#pragma once

#include <brigade/autograd/node.h>

#include <cstdint>

namespace brigade::autograd::detail {

// More threads than that record at once nowhere.
inline constexpr uint64_t kThreadsInSequence = uint64_t{1} << 12;

// Of the node that this thread records next; 0 before its first.
BRIGADE_INITIAL_EXEC inline constinit thread_local uint64_t next_sequence = 0;
uint64_t first_sequence() noexcept;

inline uint64_t peek_sequence() noexcept {
  if (next_sequence == 0) [[unlikely]]
    next_sequence = first_sequence();
  return next_sequence;
}

// Whether the thread whose next number was `from` has recorded the node `sequence` after that.
inline bool is_recorded_since(uint64_t sequence, uint64_t from) noexcept {
  return sequence >= from && sequence % kThreadsInSequence == from % kThreadsInSequence;
}

// For a node that has its edges.
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

}  // namespace brigade::autograd::detail
