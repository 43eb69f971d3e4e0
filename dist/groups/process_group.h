// ProcessGroup: ranks that exchange tensors. One small interface, several transports (shm, gloo,
// hosts, threads, nccl).
//
// Rules for all of them: every rank calls the same collectives in the same order on one group; a
// call returns at once and its Work says when the result is there; a tensor given to a collective
// must not be touched until then. Every wait ends: with the result, at the timeout, or when a peer
// is known to be gone. Errors are the same type and name the same ranks whichever transport runs.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/work.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace brigade::dist {

class Channels;
class Coalescing;
class SlotSums;
class Staging;
class Store;
struct Subgroup;
class WrapperHistory;

// What a collective is about, carried with it so that ranks which meet in different ones learn it.
// `description` is the program's own text ("loss"), the same on every rank: its hash is compared like
// kind, operation, dtype and count.
struct CollectiveOptions {
  ReduceOp op = ReduceOp::Sum;
  int root = 0;  // broadcast only
  std::string_view description = {};
  Topic topic = {};        // in place of a description: what the library's own collectives are about
  uint64_t iteration = 0;  // shown with it, not compared; 0: none
  uint32_t part = 0;       // of `parts` collectives that are issued together, from 1; 0: by itself
  uint32_t parts = 0;
  SourceLocation where = {};  // filled by the wrappers below with the caller's line
  // all_reduce of a bucket, in a group that takes_sums(): what it is to measure. Where the ranks do not agree, nothing is
  // measured.
  std::shared_ptr<SlotSums> slot_sums = nullptr;
  // When this is a step of a collective of a larger group, that one: errors speak of it, and it is
  // what is compared.
  const CollectiveInfo* step_of = nullptr;
};

// A collective as it was called.
struct CollectiveCall {
  CollectiveKind kind;
  Tensor output;
  Tensor input;  // undefined where it works in place: AllReduce, Broadcast
  CollectiveOptions options;

  // Of which the ranks speak, and whose size they compare.
  const Tensor& subject() const noexcept { return input.defined() ? input : output; }
};

class ProcessGroup {
 public:
  virtual ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  std::chrono::milliseconds timeout() const noexcept { return timeout_; }
  // "shm", "gloo", "hosts", "threads", "nccl"
  virtual const char* backend() const noexcept = 0;
  // Whether collectives take tensors of `device` as they are. Those of another device go through
  // host memory, beside the work of the device (dist/groups/staging.h).
  virtual bool reaches(Device device) const noexcept { return device.type == DeviceType::CPU; }
  // Whether an all_reduce of its memory can measure the elements on the way (CollectiveOptions::slot_sums).
  virtual bool takes_sums() const noexcept { return false; }

  // Collective, before reaches() is asked about a device: a group that can choose how tensors of
  // `device`, this rank's, go, chooses. Collectives on such tensors come here by themselves.
  virtual void choose_way(Device device, SourceLocation where = SourceLocation::current()) {
    static_cast<void>(device);
    static_cast<void>(where);
  }

  // Memory that this group reduces with the fewest copies: a 1-d uninitialised tensor. Local (peers
  // need not call it). Falls back to plain memory where the transport has no better.
  virtual Tensor allocate(int64_t numel, DType dtype) = 0;
  // The same on a device: where buckets live.
  virtual Tensor allocate(int64_t numel, DType dtype, Device device);

  // --- collectives. Tensors are contiguous (ShapeError otherwise), those of one call on one
  // device. On a device other than the CPU the result is there for what is queued after wait() on
  // the current stream. ------------------------------------------------ In place: every element
  // becomes op over ranks, summed in rank order, so that all ranks hold the same bits. Avg divides
  // by size(). All dtypes for Sum, Max, Min; floating ones for Avg. Half types accumulate in float.
  WorkPtr all_reduce(const Tensor& tensor, CollectiveOptions options = {},
                     SourceLocation where = SourceLocation::current());
  // In place: every rank gets the root's values.
  WorkPtr broadcast(const Tensor& tensor, CollectiveOptions options = {},
                    SourceLocation where = SourceLocation::current());
  // output has size() * input.numel() elements: rank r's input at position r.
  WorkPtr all_gather(const Tensor& output, const Tensor& input, CollectiveOptions options = {},
                     SourceLocation where = SourceLocation::current());
  // input has size() * output.numel() elements; rank r gets the reduced part r.
  WorkPtr reduce_scatter(const Tensor& output, const Tensor& input, CollectiveOptions options = {},
                         SourceLocation where = SourceLocation::current());
  // Blocks until all ranks are here.
  void barrier(CollectiveOptions options = {}, SourceLocation where = SourceLocation::current());

  // Blocking exchange of a text of any length per rank (two collectives). For checks and error
  // reports, not for speed.
  std::vector<std::string> all_gather_text(std::string_view text, std::string_view description = {},
                                           SourceLocation where = SourceLocation::current());
  std::vector<std::string> all_gather_text(std::string_view text, const Topic& topic,
                                           SourceLocation where = SourceLocation::current());

  // A barrier that names every rank that is missing after `timeout`, on every rank that came:
  // TimeoutError (see Diagnosed). The group is unusable after it.
  void monitored_barrier(std::chrono::milliseconds timeout, SourceLocation where = SourceLocation::current());

  // How errors call its ranks, and which these are in the group of all.
  const RankNames& names() const noexcept { return names_; }

  // The half of new_group (new_group.h) that is the transport's: called on all ranks, which have agreed
  // on `members`; gives null to those that are none. A group that hands its collectives to another
  // hands on this as well. Throws DistError unless overridden.
  virtual std::shared_ptr<ProcessGroup> make_subgroup(const Subgroup& members);

  // The half of a channel (channels.h) that is the transport's: called on its two ranks alone, at any time and on any
  // thread, until end_channels() has returned. Throws TimeoutError where the other does not come, and DistError unless
  // overridden.
  virtual std::shared_ptr<ProcessGroup> make_channel(const Subgroup& members);
  // Whether messages take tensors of `device`; and a group of the two ranks of a channel for them, beside that on the host.
  // Called on both ranks with what make_channel() gave them, on any thread. Throws DistError unless overridden.
  virtual bool sends(Device device) const noexcept { return device.type == DeviceType::CPU; }
  virtual std::shared_ptr<ProcessGroup> make_device_channel(std::shared_ptr<ProcessGroup> channel);
  // For point_to_point.h.
  Channels& channels();

  // The wrappers that this rank has made on it (wrapper_history.h).
  WrapperHistory& wrappers();

  // The last collectives of this rank.
  const FlightRecorder& flight_recorder() const noexcept { return recorder_; }

  // Does a share of the work that is pending, if peers are ready; cheap when there is none. The
  // reducer calls it between gradients.
  void progress();

  // What this rank is doing, and where: shown to peers whose wait for it ends in an error. Cheap.
  void note_activity(const RankActivity& activity) { do_note_activity(activity); }
  void note_activity(std::string_view what, SourceLocation where);
  // A failure that is not of the group: if this rank leaves, its peers are told so.
  virtual void note_failure(std::string_view reason) { static_cast<void>(reason); }

  // The first peer that is known to have left or failed, and why, as "rank 1 failed: no more data";
  // "" for none. Waits for nothing; from any thread.
  virtual std::string lost_peer() { return ""; }

  // Tells the peers that this rank gives up, with a reason; their waits throw PeerError with it.
  // The group is unusable afterwards. May be called while another thread waits in this group.
  virtual void abort(std::string_view reason) = 0;

 protected:
  ProcessGroup(int rank, int size, std::chrono::milliseconds timeout, RankNames names = {});

  RankName named(int rank) const noexcept { return names_(rank); }
  // Enters a collective in the flight recorder; returns what it is called there.
  CollectiveInfo record(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options);
  // Several that are issued together, as one.
  CollectiveInfo record_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  FlightRecorder& recorder() noexcept { return recorder_; }
  // Writes the flight recorder, see there. A group that is a part of a larger one leaves that to
  // the larger one.
  void write_record(const std::string& reason) const noexcept;

  // For the destructors of derived groups: collectives that were staged and not waited for.
  void forget_staged() noexcept;
  // For those of groups that make channels, before anything that make_channel() needs goes.
  void end_channels() noexcept;

  virtual void do_progress() {}
  // A group that hands its collectives to another hands on this as well.
  virtual void do_note_activity(const RankActivity& activity) { static_cast<void>(activity); }
  virtual WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_barrier(const CollectiveOptions& options) = 0;
  // What a CoalescingManager has collected: collectives of one kind on memory of one device, which the group reaches.
  // One Work for all; `where` made the manager. Unless overridden, each is posted in its turn.
  virtual WorkPtr do_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  virtual void do_monitored_barrier(const CollectiveOptions& options, std::chrono::milliseconds timeout);

 private:
  friend class CoalescingManager;

  // Posts it, or has it collected.
  WorkPtr run(const CollectiveCall& call);
  // Hands it to the transport.
  WorkPtr perform(const CollectiveCall& call);
  // On copies in host memory.
  WorkPtr stage(const CollectiveCall& call);
  WorkPtr post_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  // For what waits for collectives, which are not issued while they are collected.
  void refuse_while_coalescing(const char* what, SourceLocation where) const;
  CollectiveInfo told_of(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options) const;
  std::vector<std::string> gather_texts(std::string_view text, const CollectiveOptions& options, SourceLocation where);
  // What was staged comes before a collective that is not.
  void post_staged();

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  RankNames names_;
  FlightRecorder recorder_;
  std::shared_ptr<WrapperHistory> wrappers_;
  std::mutex channels_mutex_;
  std::unique_ptr<Channels> channels_;      // made when the first message comes
  std::unique_ptr<Staging> staging_;        // made when a tensor of a device comes
  std::shared_ptr<Coalescing> coalescing_;  // while there is a CoalescingManager
};

using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

// Whether groups whose transport does not tell ranks apart compare what they have posted:
// BRIGADE_COLLECTIVE_CHECK is not 0.
bool compares_collectives() noexcept;

// Whether the calling thread has given this very tensor to an all_reduce lately: a gradient that
// the user averages.
bool was_reduced_by_hand(const Tensor& tensor) noexcept;
// While it lives, what the calling thread all-reduces is a communication hook's doing, and not by hand.
class ReducedByHook {
 public:
  explicit ReducedByHook(bool is_hook = true) noexcept;
  ~ReducedByHook();
  ReducedByHook(const ReducedByHook&) = delete;
  ReducedByHook& operator=(const ReducedByHook&) = delete;

 private:
  const bool before_;
};
// How many collectives on tensors this thread has posted, on any group.
uint64_t collectives_of_this_thread() noexcept;

// Says what a rank does between two lines, where Brigade cannot see it:
//   const dist::Activity loading(*group, "loading data");
class Activity {
 public:
  Activity(ProcessGroup& group, std::string_view what, SourceLocation where = SourceLocation::current())
      : group_(group) {
    group_.note_activity(what, where);
  }
  ~Activity() { group_.note_activity(RankActivity()); }
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

 private:
  ProcessGroup& group_;
};

// How to find the other ranks. The defaults read the environment of the launcher: torchrun, Open
// MPI, MPICH or Slurm (dist/rendezvous/launch/environment.h).
struct InitOptions {
  std::string backend = "auto";  // "shm", "gloo", "hosts", "nccl", or "auto": shm when all ranks are on one
                                 // host, hosts when some share one, gloo otherwise; beside it nccl for GPUs,
                                 // where each rank has one of its own
  std::string init_method =
      "env://";   // "env://?alone" (no launcher: a world of one), "tcp://host:port", "file:///path"
  int rank = -1;  // -1: from the environment
  int world_size = -1;
  // Of every collective. Without it BRIGADE_TIMEOUT (seconds; `brigade run --timeout`), else 30 s.
  std::optional<std::chrono::milliseconds> timeout;
  // For all ranks to come. Without it `timeout`, where that is given here; else
  // BRIGADE_MEETING_TIMEOUT (seconds), else 5 minutes: programs start at different speeds.
  std::optional<std::chrono::milliseconds> meeting_timeout;
};
// Throws DistError that names the variable that is missing or malformed, and for a port in use, an
// unreachable store, a rank twice, ranks that ask for different backends; ValueError for a time-out that is not above 0 or longer than a
// year, and for more threads than a process can be expected to get (OMP_NUM_THREADS); TimeoutError that
// names the rank that did not come, PeerError where the launcher says that its process has ended.
// From then on exit(0) while a backward runs on another thread ends the process with status 1.
ProcessGroupPtr init_process_group(const InitOptions& options = {});

// Groups over an existing store; `prefix` separates several groups, `names` are
// those by which errors call the ranks of a group that is a part of a larger one.
ProcessGroupPtr make_shm_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                               const std::string& prefix = "default", const RankNames& names = {});
// Throws DistError when Brigade was built without Gloo.
ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix = "default", const RankNames& names = {});
// Ranks on several hosts, several on a host: reduces in shared memory inside each host, over Gloo
// between them.
ProcessGroupPtr make_hosts_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                 const std::string& prefix = "default", const RankNames& names = {});
// Ranks with a GPU each, over NCCL, beside a group of the host that is theirs alone from now on:
// tensors of the CPU go there, and ranks that differ, are late or are gone are found there. The
// first collective on a tensor of a device says which device is this rank's, and loads NCCL; it
// throws DistError where that is not possible, with what to do.
ProcessGroupPtr make_nccl_group(ProcessGroupPtr control);
// The same where that is possible. Where it is not (ranks share a GPU, there is no NCCL), tensors of
// a device go through `control` by way of the host's memory. All ranks choose alike.
ProcessGroupPtr make_nccl_or_staged_group(ProcessGroupPtr control);
// Ranks that are threads of this process: element r is for thread r.
std::vector<ProcessGroupPtr> make_thread_groups(int size, std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace brigade::dist
