// Shuffles, votes, and __syncwarp: the lanes of a mask meet, and the last one to arrive computes the result of all.
#include "block.h"

#include <bit>

namespace simt::detail {
namespace {
std::string lane_name(unsigned lane) { return "lane " + std::to_string(lane); }
}  // namespace

uint64_t BlockRunner::warp(WarpOperation operation, unsigned mask, uint64_t bits, unsigned source,
                           const Location& where) {
  const unsigned self = current.index;
  as_scheduler();
  Thread& thread = threads_[self];
  thread.where = where;
  thread.operation = operation;
  thread.mask = mask;
  thread.bits = bits;
  thread.source = source;
  Warp& warp = warps_[self / kWarpSize];
  check_mask(warp, self);

  const unsigned first_lane = self / kWarpSize * kWarpSize;
  thread.state = State::InWarp;
  warp.waiting |= 1U << (self - first_lane);
  if (complete_if_all_arrived(warp, first_lane, thread.mask)) {
    thread.state = State::Running;
    let_others_run();
  } else {
    wait();
  }
  as_thread(self);
  return threads_[self].result;
}

// Checks that the mask contains the calling lane and only present lanes, and equals the mask of the waiting lanes.
void BlockRunner::check_mask(Warp& warp, unsigned self) {
  Thread& thread = threads_[self];
  const unsigned lane = self % kWarpSize;
  const auto refuse = [&](const std::string& message) {
    fail(describe(current.index, "warp operation: " + message, thread.where));
  };
  if ((thread.mask >> lane & 1) == 0) refuse("the mask does not name the calling " + lane_name(lane));
  const unsigned absent = thread.mask & ~warp.present;
  const unsigned exited = thread.mask & warp.exited;
  if (strict() && absent != 0)
    refuse("the mask names " + lane_name(std::countr_zero(absent)) + ", which the block does not have");
  if (strict() && exited != 0) refuse("the mask names " + lane_name(std::countr_zero(exited)) + ", which has exited");
  thread.mask &= warp.present & ~warp.exited;

  const unsigned meeting = warp.waiting & thread.mask;
  if (meeting == 0 || !strict()) return;
  const unsigned other = std::countr_zero(meeting);
  const Thread& first = threads_[self - lane + other];
  if (first.mask != thread.mask || first.operation != thread.operation)
    refuse(lane_name(other) + " waits at " + place(first.where) + " in another operation or with another mask");
}

bool BlockRunner::complete_if_all_arrived(Warp& warp, unsigned first_lane, unsigned mask) {
  if ((warp.waiting & mask) != mask) return false;
  unsigned votes = 0;
  group_.clear();
  for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const unsigned lane = std::countr_zero(lanes);
    const Thread& thread = threads_[first_lane + lane];
    if (thread.mask != mask) return false;  // waits for another group
    if (thread.bits != 0) votes |= 1U << lane;
    group_.push_back(first_lane + lane);
  }
  for (const unsigned member : group_) {
    Thread& thread = threads_[member];
    if (thread.operation != WarpOperation::Shuffle) {
      thread.result = votes;
      continue;
    }
    if ((mask >> thread.source & 1) == 0) {
      fail(describe(member, "shuffle: reads " + lane_name(thread.source) + ", which the mask does not name",
                    thread.where));
    }
    thread.result = threads_[first_lane + thread.source].bits;
  }
  warp.waiting &= ~mask;
  for (const unsigned member : group_) {
    if (member != current.index) make_ready(member);
  }
  // Disjoint groups of one warp must not order each other, hence one token per first lane.
  order_threads(group_, &warp_tokens_[group_.front()]);
  return true;
}

void BlockRunner::check_warp_exit(unsigned thread) {
  Warp& warp = warps_[thread / kWarpSize];
  const unsigned lane = thread % kWarpSize;
  const unsigned first_lane = thread - lane;
  warp.exited |= 1U << lane;
  for (unsigned lanes = warp.waiting; lanes != 0; lanes &= lanes - 1) {
    const unsigned waiting = std::countr_zero(lanes);
    Thread& other = threads_[first_lane + waiting];
    if ((other.mask >> lane & 1) == 0) continue;
    if (strict()) {
      set_failure(std::string("kernel ") + launch_->name + ", " + name(thread) + " exited while " +
                  name(first_lane + waiting) + " waits for it in the warp operation of " + place(other.where));
      return;
    }
    other.mask &= ~(1U << lane);
  }
  if (strict() || warp.waiting == 0) return;
  complete_if_all_arrived(warp, first_lane, threads_[first_lane + std::countr_zero(warp.waiting)].mask);
}

}  // namespace simt::detail
