// Join: training on ranks with different numbers of batches.
//
// A rank that runs out of data early continues as a shadow: it takes part in every collective of the others'
// forwards, backwards and steps, with zeros, until all ranks are out of data. Then the state of the rank that trained
// longest is copied to all.
//
//   dist::Join join({ddp, zero});            // or: dist::Join join(ddp);
//   while (loader.next(batch)) { ... }       // a different number of times on each rank
//   join.finish();                           // shadows; when it returns, all ranks hold the same model
//
// Before each forward that broadcasts buffers (with throw_on_early_termination: each forward), each reduced backward,
// each exchange of a SyncBatchNorm over the same group and each step of a ZeroRedundancyOptimizer, the ranks exchange
// one word (an all_gather of 8 bytes), which announces the next operation to the shadows. If a SyncBatchNorm
// exchanges, or if several wrappers have joined, buckets wait for the end of the backward. Agreement on optimizer
// steps (DDPOptions::check_steps) is suspended until the join is finished.
//
// A shadow's zeros represent a rank without data if each step has one reduced backward, with its micro-batches under
// no_sync. A second reduced backward between two steps averages again what the first has left in .grad, which a
// shadow does not hold: the sum is then smaller than that of a single process, in PyTorch as well.
//
// An optimizer that keeps state (momentum, moments) and is not part of the join has taken fewer steps on the shadows;
// its next step, in another join or outside, is refused with the reason. Join a ZeroRedundancyOptimizer instead: a
// shadow steps its share with the gradients of the others. Schedules, clipping and everything else that changes a
// step run only on ranks with data.
//
// Joins over the same group nest: a rank that has finished the inner one shadows both. A rank that has finished the
// outer one cannot follow an inner one that others open later: this is an error on all ranks. Based on PyTorch's
// torch.distributed.algorithms.Join.
#pragma once

#include <brigade/dist/ddp/joinable.h>

#include <functional>
#include <memory>
#include <vector>

namespace brigade::dist {

struct JoinContext;

class Join {
 public:
  using Joinables = std::vector<std::reference_wrapper<Joinable>>;
  // Throws ValueError for no joinable or for several groups; DistError for a joinable that is in another join.
  explicit Join(Joinable& joinable, JoinOptions options = {}, SourceLocation where = SourceLocation::current());
  explicit Join(const Joinables& joinables, JoinOptions options = {}, SourceLocation where = SourceLocation::current());
  // If a Join was not finished on some rank, its peers wait in a collective, which ends at the timeout with this
  // rank's location.
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  // Ends the join. Collective over all ranks' finish(). Throws DistError with throw_on_early_termination: "Rank 1
  // exhausted all inputs." on that rank, "Detected at least one rank that exhausted inputs. Throwing across all
  // ranks." on the others; and if an inner join is open.
  void finish(SourceLocation where = SourceLocation::current());

  // Called before a joinable exchanges something with the other ranks. On shadows `what` (0 to 2^39 - 1) is passed to
  // its JoinHook::main_hook_at. Returns the highest rank with data; -1 outside a join and on a shadow. Throws
  // DistError if ranks with data announce different things.
  static int notify_join_context(Joinable& joinable, int64_t what = 0,
                                 SourceLocation where = SourceLocation::current());

  // Whether a reduced backward of this joinable is announced and sent only when all of its nodes have run: layers in
  // the forwards of this join exchange their own values (JoinedLayer), or several joinables reduce and may do so in
  // one backward. The same on all ranks with data.
  static bool backward_waits(const Joinable& joinable) noexcept;

 private:
  friend class Joinable;
  friend class JoinedForward;
  void leave() noexcept;

  JoinOptions options_;
  SourceLocation where_;
  std::shared_ptr<JoinContext> context_;  // shared with the enclosing joins; null when not enabled
};

// RAII: layers on this thread announce their exchanges, since they belong to a forward of a joinable.
class JoinedForward {
 public:
  explicit JoinedForward(const Joinable& joinable) noexcept;
  ~JoinedForward();
  JoinedForward(const JoinedForward&) = delete;
  JoinedForward& operator=(const JoinedForward&) = delete;

 private:
  std::shared_ptr<JoinContext> before_;
};

// A layer's own collectives over the group of the join that its forward belongs to: float64 values, 0 on a shadow.
class JoinedLayer {
 public:
  JoinedLayer() = default;
  // The join of the forward that runs on this thread.
  static JoinedLayer of(const ProcessGroup& group);
  // Whether the layer is in a join; if so, shadows take part with host memory.
  bool is_in_join() const noexcept;
  // Called before the collective; does nothing outside a join. Returns the topic of the collective, which must not
  // name the layer in a join: a shadow does not know the name.
  Topic before_all_gather(int64_t numel, const Topic& topic, SourceLocation where) const;
  Topic before_all_reduce(int64_t numel, const Topic& topic, SourceLocation where) const;

 private:
  std::shared_ptr<JoinContext> context_;
};

}  // namespace brigade::dist
