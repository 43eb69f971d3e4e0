// The process group of ranks that share memory: processes of one host (shm) and threads of one
// process (threads).
//
// A collective is posted: its header goes into the rank's ring and `arrived` moves on; the call
// returns. The work is done by the ranks themselves, whenever they ask (Work::wait, is_completed,
// progress): once every rank has arrived, the headers are compared, this rank reduces its share of
// the elements over all ranks' memory, in rank order, and writes it to all of them; then its `done`
// moves on. The collective is complete when every rank is done. There is no helper thread, no copy,
// and on the fast path no system call.
#pragma once

#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/shm/control.h>
#include <brigade/dist/groups/shm/staged_reduction.h>

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

  // --- the halves of an all_reduce, for a group that does something of its own with the elements
  // in between. The tensor must be reachable. First each rank gets to know where those of all are,
  // in rank order (null for no elements); they stay there while no rank goes on to something else.
  // Then, when each has the results for its share of the elements in its own tensor, each copies the
  // others' shares.
  using Peers = std::shared_ptr<std::vector<void*>>;
  WorkPtr show(const Tensor& tensor, const CollectiveOptions& options, Peers peers);
  WorkPtr gather_shares(const Tensor& tensor, const CollectiveOptions& options);
  // This rank's share of `count` elements: [first, second).
  std::pair<int64_t, int64_t> share(int64_t count, DType dtype) const;
  // Every wait asks after each `period`; true ends it, as if its time were over.
  void end_waits_when(std::function<bool()> ends, std::chrono::milliseconds period);
  // Where this rank is. For any thread.
  Whereabouts own_whereabouts() const { return whereabouts(rank()); }
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

  // Where the peers find memory of this rank; false when they cannot reach it (it must be staged
  // then).
  virtual bool locate(const void* data, DataPlace& place) const = 0;
  // A peer's memory, here.
  virtual void* resolve(int rank, const DataPlace& place) = 0;
  // 64-byte aligned memory that locate() finds.
  virtual Allocation allocate_shared(size_t bytes) = 0;
  // A peer may still read and write this memory, although this rank gives up: it must stay valid.
  virtual void keep(const Tensor& tensor) { static_cast<void>(tensor); }
  // Text when the rank's process has ended, "" otherwise. Asked about once a millisecond while
  // waiting.
  virtual Departure death_of(int rank) = 0;

  // Keeps the memory of what is posted and not complete. For the destructors of derived groups.
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
    Tensor output;  // what the caller sees; undefined when `shared` is that
    std::function<void(std::span<void* const> peers)> part;  // this rank's share of the work
    ReduceOp op = ReduceOp::Sum;
    std::shared_ptr<SlotSums> sums;         // to be measured on the way, or null
    std::optional<StagedReduction> pieces;  // in place of the part, where a rank stages many elements
    bool part_done = false;
    bool complete = false;
    WorkTimes times;
    std::exception_ptr error;
  };
  using OperationPtr = std::shared_ptr<Operation>;

  WorkPtr post(CollectiveKind kind, const Tensor& data, const Tensor& output, bool stage_in,
               const CollectiveOptions& options, std::function<void(std::span<void* const>)> part);
  // As much as can be done now; true when something was.
  bool advance();
  void check_headers(const Operation& operation);
  // A peer's data; PeerError when it has left with it.
  void* reach(int rank, const Operation& operation, const DataPlace& place);
  // Once all ranks have arrived: this rank's share, or as much of it as can be done now; true when something was.
  bool work_on(Operation& operation);
  // Whether all ranks want the same measured.
  bool all_measure(const Operation& operation);
  // Some rank stages its elements. `peers`: what each rank brings.
  void begin_pieces(Operation& operation, std::span<void* const> peers);
  void complete(Operation& operation);
  bool is_gone(int rank);
  // Fails with PeerError: `operation` waits for `rank`, which is gone.
  [[noreturn]] void lose(int rank, const Operation& operation);
  void wait_for(const OperationPtr& operation, std::chrono::milliseconds timeout);
  // What `operation` waits for.
  Awaited awaited(const Operation& operation) const noexcept;
  // The lowest rank that is not there yet; -1 when none.
  int behind(const Awaited& awaited) const;
  void park(const Operation& operation);
  void check_peers(const Operation& operation);
  [[noreturn]] void time_out(const Operation& operation, std::chrono::milliseconds waited);
  [[noreturn]] void fail(std::exception_ptr error);
  // Tells the peers; only the first time counts.
  void announce_failure(std::string_view reason) noexcept;
  // Ends what is pending if abort() was called, here or on another thread.
  void notice_abort();
  void end_pending();
  Whereabouts whereabouts(int rank) const;

  std::shared_ptr<Control> control_;
  std::deque<OperationPtr> pending_;  // posted and not complete, oldest first
  uint32_t posted_ = 0;
  uint32_t pieces_ = 0;        // of all staged reductions that are done
  std::exception_ptr broken_;  // after an error nothing more is possible
  std::string failure_;        // see note_failure
  // abort() may come from another thread than the one that works; that one takes notice.
  std::atomic<bool> aborted_{false};
  std::atomic<bool> announced_{false};
  std::mutex abort_mutex_;
  std::string abort_reason_;
  std::function<bool()> ends_waits_;  // see end_waits_when
  std::chrono::milliseconds ends_waits_period_{0};
  bool crowded_;  // more ranks than processors: do not spin
};

// make_shm_group, with the type.
std::shared_ptr<SharedGroup> make_group_of_processes(const std::shared_ptr<Store>& store, int rank, int size,
                                                     std::chrono::milliseconds timeout, const std::string& prefix,
                                                     const RankNames& names);

}  // namespace brigade::dist::shm
