// ProcessGroup: ranks that exchange tensors. One small interface, several transports (shm, gloo,
// hosts, threads, nccl).
//
// Rules for all transports: every rank calls the same collectives in the same order on one group; a call returns at
// once, and its Work reports when the result is ready; a tensor given to a collective must not be touched until then.
// Every wait ends: with the result, at the timeout, or when a peer is known to be gone. Errors have the same type and
// name the same ranks on every transport.
#pragma once

#include <brigade/core/tensor.h>
#include <brigade/dist/errors/flight_recorder.h>
#include <brigade/dist/errors/rank_activity.h>
#include <brigade/dist/errors/rank_names.h>
#include <brigade/dist/groups/work.h>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <typeindex>
#include <utility>
#include <vector>

namespace brigade::dist {

class Channels;
class Coalescing;
class SlotSums;
class Staging;
class Store;
struct Subgroup;

// Options and metadata of a collective. The metadata travels with it, so that ranks which meet in different collectives
// can report both. `description` is text of the program ("loss"), the same on every rank: its hash is compared like
// kind, operation, dtype and count.
struct CollectiveOptions {
  ReduceOp op = ReduceOp::Sum;
  int root = 0;  // broadcast only
  std::string_view description = {};
  Topic topic = {};        // in place of a description, for the library's own collectives
  uint64_t iteration = 0;  // shown in errors, not compared; 0: none
  uint32_t part = 0;       // index, from 1, among `parts` collectives issued together; 0: alone
  uint32_t parts = 0;
  SourceLocation where = {};  // filled by the wrappers below with the caller's line
  // For an all_reduce of a bucket in a group that takes_sums(): what it measures. When the ranks do not agree, nothing
  // is measured.
  std::shared_ptr<SlotSums> slot_sums = nullptr;
  // When this collective is a step of a larger group's collective: the latter, which is compared and named in errors.
  const CollectiveInfo* step_of = nullptr;
};

// The arguments of a collective call.
struct CollectiveCall {
  CollectiveKind kind;
  Tensor output;
  Tensor input;  // undefined where it works in place: AllReduce, Broadcast
  CollectiveOptions options;

  // The tensor that errors describe, and whose size the ranks compare.
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
  // Whether collectives take tensors of `device` directly. Tensors of other devices are staged through host memory,
  // overlapped with the work of the device (dist/groups/staging.h).
  virtual bool reaches(Device device) const noexcept { return device.type == DeviceType::CPU; }
  // Whether an all_reduce of this group's memory can measure the elements on the way (CollectiveOptions::slot_sums).
  virtual bool takes_sums() const noexcept { return false; }

  // Collective; must run before reaches() is queried for a device. Lets a group choose the transport for tensors of
  // `device`, which is this rank's. Collectives on such tensors call it implicitly.
  virtual void choose_way(Device device, SourceLocation where = SourceLocation::current()) {
    static_cast<void>(device);
    static_cast<void>(where);
  }

  // Memory that this group reduces with the fewest copies: a 1-d uninitialized tensor. Local (peers need not call it).
  // Falls back to plain memory when the transport has nothing better.
  virtual Tensor allocate(int64_t numel, DType dtype) = 0;
  // The same on a device, for buckets.
  virtual Tensor allocate(int64_t numel, DType dtype, Device device);

  // --- Collectives. Tensors must be contiguous (ShapeError otherwise), and those of one call on one device. On a
  // device other than the CPU, the result is visible to work queued on the current stream after wait().
  //
  // In place: every element becomes op over ranks, summed in rank order, so that all ranks hold the same bits. Avg
  // divides by size(). All dtypes for Sum, Max, Min; floating ones for Avg. Half types accumulate in float.
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
  // Blocks until all ranks have arrived.
  void barrier(CollectiveOptions options = {}, SourceLocation where = SourceLocation::current());

  // Blocking exchange of one text of any length per rank (two collectives). For checks and error reports, not for
  // speed.
  std::vector<std::string> all_gather_text(std::string_view text, std::string_view description = {},
                                           SourceLocation where = SourceLocation::current());
  std::vector<std::string> all_gather_text(std::string_view text, const Topic& topic,
                                           SourceLocation where = SourceLocation::current());

  // A barrier that, on every rank that arrived, throws TimeoutError naming every rank that is missing after `timeout`
  // (see Diagnosed). The group is unusable after that error.
  void monitored_barrier(std::chrono::milliseconds timeout, SourceLocation where = SourceLocation::current());

  // The names of the ranks in errors, and their global ranks.
  const RankNames& names() const noexcept { return names_; }

  // The transport's half of new_group (new_group.h): called on all ranks, which have agreed on `members`; returns null
  // on ranks that are not members. A group that forwards its collectives to another group forwards this as well. Throws
  // DistError unless overridden.
  virtual std::shared_ptr<ProcessGroup> make_subgroup(const Subgroup& members);

  // The transport's half of a channel (channels.h): called on its two ranks only, at any time and on any thread, until
  // end_channels() has returned. Throws TimeoutError when the other rank does not arrive, and DistError unless
  // overridden.
  virtual std::shared_ptr<ProcessGroup> make_channel(const Subgroup& members);
  // sends(): whether messages take tensors of `device`. make_device_channel(): makes a group of a channel's two ranks
  // for such messages, in addition to the one on the host. Called on both ranks with the result of make_channel(), on
  // any thread. Throws DistError unless overridden.
  virtual bool sends(Device device) const noexcept { return device.type == DeviceType::CPU; }
  virtual std::shared_ptr<ProcessGroup> make_device_channel(std::shared_ptr<ProcessGroup> channel);
  // For point_to_point.h.
  Channels& channels();

  // What a layer above keeps for the life of the group: one T, default-constructed at the first call.
  template <class T>
  T& attached() {
    std::shared_ptr<void>& found = attached_[typeid(T)];
    if (!found) found = std::make_shared<T>();
    return *static_cast<T*>(found.get());
  }

  // The last collectives of this rank.
  const FlightRecorder& flight_recorder() const noexcept { return recorder_; }

  // Advances pending work if peers are ready; cheap when there is none. The reducer calls it between gradients.
  void progress();

  // Notes what this rank is doing, and at which line: shown to peers whose wait for it ends in an error. Cheap.
  void note_activity(const RankActivity& activity) { do_note_activity(activity); }
  void note_activity(std::string_view what, SourceLocation where);
  // Notes a failure outside the group: if this rank leaves, it is reported to its peers.
  virtual void note_failure(std::string_view reason) { static_cast<void>(reason); }
  // Whether an exception has ended what this rank did with the group: if it leaves, its peers learn that.
  virtual void note_exception(bool has_ended) { static_cast<void>(has_ended); }

  // The first peer that is known to have left or failed, and why, as "rank 1 failed: no more data"; "" for none. Does
  // not block; may be called from any thread.
  virtual std::string lost_peer() { return ""; }

  // Notifies the peers that this rank gives up; their waits throw PeerError with the reason. The group is unusable
  // afterwards. May be called while another thread waits in this group.
  virtual void abort(std::string_view reason) = 0;

 protected:
  ProcessGroup(int rank, int size, std::chrono::milliseconds timeout, RankNames names = {});

  RankName named(int rank) const noexcept { return names_(rank); }
  // Enters a collective in the flight recorder; returns its entry.
  CollectiveInfo record(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options);
  // Enters collectives that are issued together as one entry.
  CollectiveInfo record_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  FlightRecorder& recorder() noexcept { return recorder_; }
  // Writes the flight recorder to its file (flight_recorder.h). A group that is part of a larger one leaves that to the
  // larger one.
  void write_record(const std::string& reason) const noexcept;

  // For the destructors of derived groups: drops collectives that were staged and not waited for.
  void forget_staged() noexcept;
  // For the destructors of groups that make channels: call it before anything that make_channel() needs is destroyed.
  void end_channels() noexcept;

  virtual void do_progress() {}
  // A group that forwards its collectives to another group forwards this as well.
  virtual void do_note_activity(const RankActivity& activity) { static_cast<void>(activity); }
  virtual WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) = 0;
  virtual WorkPtr do_barrier(const CollectiveOptions& options) = 0;
  // Posts the calls that a CoalescingManager has collected: collectives of one kind on memory of one device, which the
  // group reaches. Returns one Work for all; `where` is the line that made the manager. Unless overridden, posts them
  // one by one.
  virtual WorkPtr do_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  virtual void do_monitored_barrier(const CollectiveOptions& options, std::chrono::milliseconds timeout);

 private:
  friend class CoalescingManager;

  // Posts the call, or adds it to the coalescing manager.
  WorkPtr run(const CollectiveCall& call);
  // Hands the call to the transport.
  WorkPtr perform(const CollectiveCall& call);
  // Runs the call on copies in host memory.
  WorkPtr stage(const CollectiveCall& call);
  WorkPtr post_coalesced(std::span<const CollectiveCall> calls, SourceLocation where);
  // Throws DistError in calls that would wait for collectives, which are not issued while they are being coalesced.
  void refuse_while_coalescing(const char* what, SourceLocation where) const;
  CollectiveInfo described(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options) const;
  std::vector<std::string> gather_texts(std::string_view text, const CollectiveOptions& options, SourceLocation where);
  // Posts the staged collectives first, before a collective that is not staged.
  void post_staged();

  int rank_;
  int size_;
  std::chrono::milliseconds timeout_;
  RankNames names_;
  FlightRecorder recorder_;
  std::map<std::type_index, std::shared_ptr<void>> attached_;
  std::mutex channels_mutex_;
  std::unique_ptr<Channels> channels_;      // made at the first message
  std::unique_ptr<Staging> staging_;        // made at the first device tensor
  std::shared_ptr<Coalescing> coalescing_;  // while there is a CoalescingManager
};

using ProcessGroupPtr = std::shared_ptr<ProcessGroup>;

// Whether ranks compare their posted collectives on transports that do not compare them anyway: true unless
// BRIGADE_COLLECTIVE_CHECK is 0.
bool compares_collectives() noexcept;

// RAII: notes what this rank does in a scope that Brigade cannot observe:
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
                                 // host, hosts when some share one, gloo otherwise; with nccl for
                                 // GPU tensors if each rank has its own GPU
  std::string init_method =
      "env://";   // "env://?alone" (no launcher: a world of one), "tcp://host:port", "file:///path"
  int rank = -1;  // -1: from the environment
  int world_size = -1;
  // For every collective. Default: BRIGADE_TIMEOUT (seconds; `brigade run --timeout`), else 30 s.
  std::optional<std::chrono::milliseconds> timeout;
  // For all ranks to arrive. Default: `timeout` if it is set here, else BRIGADE_MEETING_TIMEOUT (seconds), else 5
  // minutes, because programs start at different speeds.
  std::optional<std::chrono::milliseconds> meeting_timeout;
};
// Throws DistError that names a missing or malformed variable, and for a port in use, an unreachable store, a duplicate
// rank, or ranks that ask for different backends; ValueError for a timeout that is not positive or longer than a year,
// and for more threads than a process can be expected to get (OMP_NUM_THREADS); TimeoutError that names the rank that
// did not arrive; PeerError when the launcher reports that the rank's process has ended. After this call, exit(0) while
// a backward runs on another thread ends the process with status 1.
ProcessGroupPtr init_process_group(const InitOptions& options = {});

// Groups over an existing store. `prefix` separates several groups; `names` gives the rank names for errors when the
// group is part of a larger one.
ProcessGroupPtr make_shm_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                               const std::string& prefix = "default", const RankNames& names = {});
// Throws DistError when Brigade was built without Gloo.
ProcessGroupPtr make_gloo_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                const std::string& prefix = "default", const RankNames& names = {});
// For several hosts with several ranks each: reduces in shared memory inside each host, over Gloo between them.
ProcessGroupPtr make_hosts_group(std::shared_ptr<Store> store, int rank, int size, std::chrono::milliseconds timeout,
                                 const std::string& prefix = "default", const RankNames& names = {});
// Ranks with one GPU each, over NCCL. `control` is a host group, used only by this group afterwards: it carries CPU
// tensors, and detects ranks that mismatch, are late or are gone. The first collective on a device tensor sets this
// rank's device and loads NCCL; it throws DistError, with a remedy, when that is not possible.
ProcessGroupPtr make_nccl_group(ProcessGroupPtr control);
// Like make_nccl_group when that is possible. Otherwise (ranks share a GPU, or NCCL is missing) device tensors are
// staged through host memory and `control`. All ranks make the same choice.
ProcessGroupPtr make_nccl_or_staged_group(ProcessGroupPtr control);
// Groups whose ranks are threads of this process: element r is for thread r.
std::vector<ProcessGroupPtr> make_thread_groups(int size, std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace brigade::dist
