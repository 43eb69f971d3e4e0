// join(): ranks with different numbers of batches.
//
// A rank that runs out of data first goes on as a shadow: it takes part in every collective of the
// others' forwards and backwards with zeros, until all ranks are out of data. Then the model of the
// rank that trained longest is copied to all.
//
//   dist::Join join(ddp);
//   while (loader.next(batch)) { ... }       // a different number of times on each rank
//   join.finish();                           // shadows; when it returns, all ranks hold the same model
//
// Before each forward that broadcasts buffers and each reduced backward the ranks exchange one word
// (an all_gather of 8 bytes), which tells a shadow what comes. Agreement on optimizer steps
// (DDPOptions::check_steps) rests meanwhile. Source of the idea: PyTorch's
// torch.distributed.algorithms.Join.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>

namespace brigade::dist {

struct JoinOptions {
  // true: a gradient is always divided by the world size, so each sample counts the same over the
  // epoch. false: by the ranks that still have data.
  bool divide_by_initial_world_size = true;
  // When a rank runs out of data: an error on every rank instead of shadowing.
  bool throw_on_early_termination = false;
};

class Join {
 public:
  explicit Join(DistributedDataParallelBase& ddp, JoinOptions options = {},
                SourceLocation where = SourceLocation::current());
  // Leaves the mode. A Join that was not finished on some rank leaves its peers in a collective,
  // which ends at the timeout with this rank's place.
  ~Join();
  Join(const Join&) = delete;
  Join& operator=(const Join&) = delete;

  // Collective over all ranks' finish(). Throws DistError with throw_on_early_termination: "Rank 1
  // exhausted all inputs." there, "Detected at least one rank that exhausted inputs. Throwing
  // across all ranks." on the others.
  void finish(SourceLocation where = SourceLocation::current());

 private:
  friend class DistributedDataParallelBase;
  enum Event : int64_t { kFinished = 0, kForward = 1, kBackward = 2 };
  // Every rank's next event; throws when those that have data disagree, or on early termination.
  std::vector<int64_t> announce(Event event, SourceLocation where);
  // The highest rank with data: the source of buffers and of the final model.
  static int source(const std::vector<int64_t>& events);

  DistributedDataParallelBase& ddp_;
  JoinOptions options_;
  SourceLocation where_;
  int last_source_ = 0;
  bool finished_ = false;
};

}  // namespace brigade::dist
