// The timeline: what happened when in each reduced backward of this rank.
//
// Times are nanoseconds of the steady clock of this process (0: did not happen). Ranks of one host
// share that clock; across hosts, trace_json() aligns the clocks by the times at which collectives
// end.
#pragma once

#include <brigade/core/place.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <vector>

namespace brigade::dist {

struct BucketEvents {
  std::vector<uint32_t> parameters;
  int64_t bytes = 0;       // payload
  int64_t filled = 0;      // its last gradient became ready (or: known not to come)
  int64_t launched = 0;    // its collective was posted
  int64_t arrived = 0;     // all ranks had posted it (0: the process group cannot know)
  int64_t reduced = 0;     // the sums were complete (0: unknown)
  int64_t finished = 0;    // seen complete
  int64_t wait_began = 0;  // backward had nothing else to do
  int64_t wait_ended = 0;
  // If a device runs the collective: when its turn came (before that of the last peer), and when the result was there.
  int64_t device_began = 0;
  int64_t device_ended = 0;
};

// An optimizer's step, taken or skipped.
struct StepEvents {
  std::string optimizer;  // "AdamW"
  uint64_t number = 0;    // of its steps, from 1
  Place where;
  int64_t at = 0;          // it was decided
  double loss_scale = 0;   // 0: without a loss scaler
  bool found_inf = false;  // on this rank
  bool skipped = false;    // the same on all ranks
};

struct RoundEvents {
  uint64_t round = 0;  // number of the reduced backward, from 1
  Place backward;      // of the call
  int64_t forward_began = 0;
  int64_t began = 0;          // the plan was known
  int64_t compute_ended = 0;  // all nodes had run
  int64_t ended = 0;          // gradients are final
  // The same moments on a device, if one runs the nodes; the host runs ahead of it.
  int64_t device_began = 0;
  int64_t device_compute_ended = 0;
  std::vector<int64_t> ready;  // per parameter
  std::vector<BucketEvents> buckets;
  bool rebuilt = false;  // buckets were rebuilt after it
  // "mul in float16 at train.cpp:12": the operation that first made an infinity or a NaN on this
  // rank; "" if none did, or if nothing was checked.
  std::string non_finite;
  std::vector<StepEvents> steps;  // until the next round's backward

  // Communication time: from launch to finish, on the device if one runs the collective, summed over buckets; and the
  // part of it that passed while nodes were still running.
  int64_t communication() const noexcept;
  int64_t hidden() const noexcept;
  // hidden / communication; 0 without any.
  double overlap() const noexcept;
};

// The last rounds of one rank.
class Timeline {
 public:
  // Fills in what was unknown when a round ended; returns true when nothing is missing any more.
  using Complete = std::function<bool(RoundEvents&)>;

  // How many rounds to keep (default 1: the last). A wrapper without diagnosis records once this is called.
  void keep(size_t rounds);
  bool was_asked_for() const noexcept { return asked_for_; }
  void add(RoundEvents events, Complete complete = nullptr);
  // Adds a step to the latest round.
  void add(StepEvents step);
  // The rounds, with what is known so far; waits for nothing.
  const std::deque<RoundEvents>& rounds() const;

 private:
  void drop_old();

  mutable std::deque<RoundEvents> rounds_;
  mutable std::deque<Complete> open_;  // per round; null: complete
  size_t kept_ = 1;
  bool asked_for_ = false;
};

}  // namespace brigade::dist
