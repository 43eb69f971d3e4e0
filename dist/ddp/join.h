// Join: ranks with different numbers of batches.
//
// A rank that runs out of data first goes on as a shadow: it takes part in every collective of the
// others' forwards, backwards and steps, with zeros, until all ranks are out of data. Then what the
// rank that trained longest holds is copied to all.
//
//   dist::Join join({ddp, zero});            // or: dist::Join join(ddp);
//   while (loader.next(batch)) { ... }       // a different number of times on each rank
//   join.finish();                           // shadows; when it returns, all ranks hold the same model
//
// Before each forward that broadcasts buffers (with throw_on_early_termination: each forward), each
// reduced backward, each exchange of a SyncBatchNorm over the same group and each step of a
// ZeroRedundancyOptimizer the ranks exchange one word (an all_gather of 8 bytes), which tells a
// shadow what comes. Where a SyncBatchNorm exchanges, or where several wrappers have joined, buckets wait
// for the end of the backward.
// Agreement on optimizer steps (DDPOptions::check_steps) rests until the join is finished.
//
// A shadow's zeros stand for a rank without data where a step has one reduced backward, its micro-batches under no_sync. A
// second reduced backward between two steps averages again what the first has left in .grad, and a shadow has nothing of
// that: the sum is then less than one process gets, in PyTorch as well.
//
// An optimizer that keeps state (momentum, moments) and stands outside the join has stepped less
// often on the shadows; its next step, in another join or outside, is refused with the reason. Join a ZeroRedundancyOptimizer
// instead: a shadow steps its share with the gradients of the others. Schedules, clipping and
// whatever else changes a step happen on ranks with data only.
//
// Joins over the same group nest: a rank that has finished the inner one shadows both. A rank that
// has finished the outer one cannot follow an inner one that others open later: an error on all
// ranks. Source of the idea: PyTorch's torch.distributed.algorithms.Join.
#pragma once

#include <brigade/dist/ddp/joinable.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace brigade::dist {

struct JoinContext;

class Join {
 public:
  using Joinables = std::vector<std::reference_wrapper<Joinable>>;
  // Throws ValueError for no joinable, and for several groups; DistError for a joinable that is in
  // another join.
  explicit Join(Joinable& joinable, JoinOptions options = {}, SourceLocation where = SourceLocation::current());
  explicit Join(const Joinables& joinables, JoinOptions options = {}, SourceLocation where = SourceLocation::current());
  // A Join that was not finished on some rank leaves its peers in a collective, which ends at the
  // timeout with this rank's place.
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  // Collective over all ranks' finish(); ends the join. Throws DistError with
  // throw_on_early_termination: "Rank 1 exhausted all inputs." there, "Detected at least one rank
  // that exhausted inputs. Throwing across all ranks." on the others; and where an inner join is
  // open.
  void finish(SourceLocation where = SourceLocation::current());

  // A joinable is about to exchange something with the other ranks. `what` (0 to 2^39 - 1) reaches
  // its JoinHook::main_hook_at on shadows. Returns the highest rank with data; -1 outside a join
  // and on a shadow. Throws DistError when ranks with data announce different things.
  static int notify_join_context(Joinable& joinable, int64_t what = 0,
                                 SourceLocation where = SourceLocation::current());

  // Whether a reduced backward of this joinable announces itself and sends only when all of its
  // nodes have run: layers in the forwards of this join exchange values of their own (JoinedLayer),
  // or several joinables reduce and may do so in one backward. The same on all ranks with data.
  static bool backward_waits(const Joinable& joinable) noexcept;

 private:
  friend class Joinable;
  friend class JoinedForward;
  void leave() noexcept;

  JoinOptions options_;
  SourceLocation where_;
  std::shared_ptr<JoinContext> context_;  // shared with the joins that this one is in; null when not enabled
};

// While it lives, layers on this thread announce what they exchange: they belong to a forward of a
// joinable.
class JoinedForward {
 public:
  explicit JoinedForward(const Joinable& joinable) noexcept;
  ~JoinedForward();
  JoinedForward(const JoinedForward&) = delete;
  JoinedForward& operator=(const JoinedForward&) = delete;

 private:
  std::shared_ptr<JoinContext> before_;
};

// A layer's own collectives over the group of the join that its forward belongs to: float64 values,
// of which a shadow's are 0.
class JoinedLayer {
 public:
  JoinedLayer() = default;
  // Of the forward that runs on this thread.
  static JoinedLayer of(const ProcessGroup& group);
  // Then shadows take part with memory of the host.
  bool is_in_join() const noexcept;
  // Before the collective; nothing outside a join. Returns how the collective is to be described: a
  // shadow does not know the layer's name.
  Topic before_all_gather(int64_t numel, const Topic& topic, SourceLocation where) const;
  Topic before_all_reduce(int64_t numel, const Topic& topic, SourceLocation where) const;

 private:
  std::shared_ptr<JoinContext> context_;
};

}  // namespace brigade::dist
