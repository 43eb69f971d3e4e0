// The process group of ranks that share memory: processes of one host (shm) and threads of one
// process (threads).
//
// Posting a collective writes its header into the rank's ring, advances `arrived` and returns. The ranks themselves do
// the work when they query it (Work::wait, is_completed, progress): once every rank has arrived, the headers are
// compared, this rank reduces its share of the elements over all ranks' memory, in rank order, and writes it to all of
// them; then it advances its `done`. The collective is complete when every rank is done. There is no helper thread, no
// copy, and on the fast path no system call.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/groups/shm/staged_reduction.h>
#include <brigade/dist/groups/unfinished.h>

#include <atomic>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist::shm {

class SharedGroup : public ProcessGroup {
 public:
  ~SharedGroup() override;

  using ProcessGroup::allocate;
  Tensor allocate(int64_t numel, DType dtype) override;
  std::string lost_peer() override;
  void abort(std::string_view reason) override;
  void note_failure(std::string_view reason) override { failure_ = reason; }
  void note_exception(bool has_ended) override { by_exception_ = has_ended; }

  // --- The halves of an all_reduce, for a group that does its own work on the elements in between. The tensor must be
  // reachable. show(): each rank gets the addresses of all ranks' elements, in rank order (null for no elements); they
  // stay valid as long as no rank proceeds to other work. gather_shares(): once each rank has the results for its share
  // in its own tensor, each rank copies the others' shares.
  using Peers = std::shared_ptr<std::vector<void*>>;
  WorkPtr show(const Tensor& tensor, const CollectiveOptions& options, Peers peers);
  WorkPtr gather_shares(const Tensor& tensor, const CollectiveOptions& options);
  // This rank's share of `count` elements: [first, second).
  std::pair<int64_t, int64_t> share(int64_t count, DType dtype) const;
  // Every wait calls `ends` after each `period`; true ends the wait, like a timeout.
  void end_waits_when(std::function<bool()> ends, std::chrono::milliseconds period);
  // The status of this rank. May be called from any thread.
  RankStatus own_status() const { return rank_status(rank()); }
  // Whether the peers can read and write this tensor in place.
  using ProcessGroup::reaches;
  bool reaches(const Tensor& tensor) const;
  bool takes_sums() const noexcept override { return true; }

 protected:
  SharedGroup(int rank, int size, std::chrono::milliseconds timeout, std::shared_ptr<Control> control,
              RankNames names = {});

  void do_progress() override;
  void do_note_activity(const RankActivity& activity) override;
  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override;
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override;
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override;
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override;
  WorkPtr do_barrier(const CollectiveOptions& options) override;

  // The location of this rank's memory for its peers; false when they cannot reach it (then it must be staged).
  virtual bool locate(const void* data, DataPlace& place) const = 0;
  // The address of a peer's memory in this process.
  virtual void* resolve(int rank, const DataPlace& place) = 0;
  // 64-byte aligned memory that locate() finds.
  virtual Allocation allocate_shared(size_t bytes) = 0;
  // For the destructors of derived groups: from now on, only this object's caller works on the collectives.
  void retire() { unfinished_->end(); }
  // Keeps the memory of `tensor` valid after this rank gives up, since a peer may still read and write it.
  virtual void keep(const Tensor& tensor) { static_cast<void>(tensor); }
  // How the rank's process has ended; Running otherwise. Called about once a millisecond while waiting.
  virtual Departure death_of(int rank) = 0;

  // Calls keep() for the memory of incomplete collectives. For the destructors of derived groups.
  void keep_pending();

  RankBlock& block(int rank) const noexcept { return control_->ranks[rank]; }
  const std::shared_ptr<Control>& control() const noexcept { return control_; }

 private:
  friend class SharedWork;
  // A posted collective.
  struct Operation {
    uint32_t sequence = 0;
    CollectiveKind kind = CollectiveKind::Barrier;
    Header header;
    Tensor shared;  // what peers read or write: the caller's tensor or its staged copy
    Tensor output;  // what the caller sees; undefined when that is `shared`
    std::function<void(std::span<void* const> peers)> part;  // this rank's share of the work
    ReduceOp op = ReduceOp::Sum;
    std::shared_ptr<SlotSums> sums;         // to be measured on the way, or null
    std::optional<StagedReduction> pieces;  // instead of `part`, if a rank stages many elements
    bool part_done = false;
    bool complete = false;
    WorkTimes times;
    std::exception_ptr error;
  };
  using OperationPtr = std::shared_ptr<Operation>;

  WorkPtr post(CollectiveKind kind, const Tensor& data, const Tensor& output, bool stage_in,
               const CollectiveOptions& options, std::function<void(std::span<void* const>)> part);
  // Does as much as possible now; returns whether there was progress. Like all that follows, requires the lock of
  // `unfinished_`.
  bool advance();
  // Does all that is possible now. Throws once the group has failed.
  void advance_pending();
  // The same; returns whether a collective is left that can still complete.
  bool advance_quietly() noexcept;
  void check_headers(const Operation& operation);
  // Resolves a peer's data; PeerError when the peer has left and its data is gone.
  void* reach(int rank, const Operation& operation, const DataPlace& place);
  // Once all ranks have arrived: does this rank's share, or as much of it as possible now; returns whether there was
  // progress.
  bool work_on(Operation& operation);
  // Whether all ranks request the same measurement.
  bool all_measure(const Operation& operation);
  // Starts a staged reduction, because some rank stages its elements. `peers`: the data of each rank.
  void begin_pieces(Operation& operation, std::span<void* const> peers);
  void complete(Operation& operation);
  bool is_gone(int rank);
  // Fails with PeerError: `operation` waits for `rank`, which is gone.
  [[noreturn]] void lose(int rank, const Operation& operation);
  void wait_for(const OperationPtr& operation, std::chrono::milliseconds timeout);
  // What `operation` waits for.
  Awaited awaited(const Operation& operation) const noexcept;
  // The lowest rank that has not got there yet; -1 when none.
  int behind(const Awaited& awaited) const;
  void park(const Operation& operation);
  void check_peers(const Operation& operation);
  [[noreturn]] void time_out(const Operation& operation, std::chrono::milliseconds waited);
  [[noreturn]] void fail(std::exception_ptr error);
  // Notifies the peers; only the first call counts.
  void announce_failure(std::string_view reason) noexcept;
  // Ends the pending collectives if abort() was called, here or on another thread.
  void notice_abort();
  void end_pending();
  RankStatus rank_status(int rank) const;

  std::shared_ptr<Control> control_;
  const std::shared_ptr<Unfinished> unfinished_ = std::make_shared<Unfinished>();
  std::deque<OperationPtr> pending_;  // posted and not complete, oldest first
  uint32_t posted_ = 0;
  uint32_t pieces_ = 0;        // of all finished staged reductions
  std::exception_ptr broken_;  // after an error nothing more is possible
  std::string failure_;        // see note_failure
  bool by_exception_ = false;  // see note_exception
  // abort() may be called from a different thread than the working one, which checks these.
  std::atomic<bool> aborted_{false};
  std::atomic<bool> announced_{false};
  std::mutex abort_mutex_;
  std::string abort_reason_;
  std::function<bool()> ends_waits_;  // see end_waits_when
  std::chrono::milliseconds ends_waits_period_{0};
  bool crowded_;  // more ranks than processors: do not spin
};

// Same as make_shm_group, but returns the derived type.
std::shared_ptr<SharedGroup> make_group_of_processes(const std::shared_ptr<Store>& store, int rank, int size,
                                                     std::chrono::milliseconds timeout, const std::string& prefix,
                                                     const RankNames& names);

}  // namespace brigade::dist::shm
