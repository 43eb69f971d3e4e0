// The nccl backend: ranks with one GPU each. Collectives on device tensors are queued on a separate high-priority
// stream, after the work of the current stream, and nothing blocks the host.
//
// NCCL does not detect ranks that meet in different collectives or do not arrive. So the group is paired with a host
// group (`control`), over which the ranks exchange, while NCCL runs, what they have posted: an all-reduce of one number
// under the collective's name, which the host group checks like its own collectives. Lost, late and mismatched ranks
// are detected there, and errors carry its messages (works.h); CPU tensors, texts and barriers go there too.
// BRIGADE_COLLECTIVE_CHECK=0 disables that all-reduce, and with it the explanations.
//
// The communicator is made at the first device tensor, which determines this rank's device. Backend auto uses this
// group too: if the ranks cannot make a communicator, it stages device tensors over the host group.
#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/dist/errors/collective.h>
#include <brigade/dist/groups/backends.h>
#include <brigade/dist/groups/nccl/communicator.h>
#include <brigade/dist/groups/nccl/library.h>
#include <brigade/dist/groups/nccl/registered_memory.h>
#include <brigade/dist/groups/nccl/works.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/rendezvous/rendezvous.h>

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>
#include <utility>

namespace brigade::dist {
namespace {

constexpr std::chrono::seconds kLongestFarewell{5};

nccl::DataType type_of(DType dtype) {
  switch (dtype) {
    case DType::Float64: return nccl::DataType::Float64;
    case DType::Float32: return nccl::DataType::Float32;
    case DType::Float16: return nccl::DataType::Float16;
    case DType::BFloat16: return nccl::DataType::Bfloat16;
    case DType::Int64: return nccl::DataType::Int64;
    case DType::Int32: return nccl::DataType::Int32;
    default: return nccl::DataType::Uint8;
  }
}

nccl::RedOp op_of(ReduceOp op, DType dtype) {
  switch (op) {
    case ReduceOp::Avg: return nccl::RedOp::Avg;
    case ReduceOp::Max: return nccl::RedOp::Max;
    case ReduceOp::Min: return nccl::RedOp::Min;
    default: return dtype == kBool ? nccl::RedOp::Max : nccl::RedOp::Sum;  // a sum of bools is a logical or
  }
}

// What the ranks exchange before the communicator is made.
struct Seat {
  std::string trouble;  // why this rank cannot make one; "" when it can
  std::string host, bus, device;
  std::string version;

  std::string to_text() const { return fmt::format("{}\n{}\n{}\n{}\n{}", trouble, host, bus, device, version); }
  static Seat from_text(const std::string& text) {
    Seat seat;
    std::istringstream lines(text);
    for (std::string* each : {&seat.trouble, &seat.host, &seat.bus, &seat.device, &seat.version})
      std::getline(lines, *each);
    return seat;
  }
};

class NcclGroup final : public ProcessGroup {
 public:
  // The use of the communicator. Messages: between two ranks, from the root to the other rank.
  enum class Use : uint8_t { Collectives, Messages };

  NcclGroup(ProcessGroupPtr control, bool may_stage, Use use = Use::Collectives)
      : ProcessGroup(control->rank(), control->size(), control->timeout(), control->names()),
        control_(std::move(control)),
        may_stage_(may_stage),
        use_(use),
        works_(
            timeout(), [this](const std::exception_ptr& error) { on_failure(error); },
            [this] { return control_->lost_peer(); }) {}

  ~NcclGroup() override {
    end_channels();
    forget_staged();
    if (!communicator_) return;
    // The peers need what this rank has queued, and wait for nothing else. What all ranks have queued completes even if
    // this rank leaves after a failure, so that the peers fail at the same point.
    const bool in_trouble = has_failed_ || std::uncaught_exceptions() > 0;
    const std::chrono::milliseconds farewell = in_trouble ? nccl::kReasonsTake : kLongestFarewell;
    if (!works_.finish_within(std::min(timeout(), farewell)) || in_trouble) communicator_->abort();
  }

  const char* backend() const noexcept override {
    return may_stage_ && way_ != Way::Nccl ? control_->backend() : "nccl";
  }
  bool reaches(Device device) const noexcept override {
    if (device.type == DeviceType::CPU || !may_stage_) return true;
    return way_ == Way::Nccl && device == device_;  // a second device of a rank is staged
  }
  bool takes_sums() const noexcept override { return control_->takes_sums(); }  // for host memory
  void choose_way(Device device, SourceLocation where) override {
    if (way_ == Way::Open && (may_stage_ || !is_alone_)) connect(device, where);
  }
  ProcessGroupPtr make_subgroup(const Subgroup& members) override {
    works_.throw_if_failed();
    ProcessGroupPtr control = control_->make_subgroup(members);
    std::shared_ptr<nccl::Communicator> communicator = split(members);
    if (!members.is_member()) return nullptr;
    auto group = std::make_shared<NcclGroup>(std::move(control), may_stage_);
    if (communicator) {
      group->library_ = library_;
      group->device_ = device_;
      group->way_ = Way::Nccl;
      group->take(std::move(communicator));
    }
    return group;
  }
  ProcessGroupPtr make_channel(const Subgroup& members) override { return control_->make_channel(members); }
  bool sends(Device) const noexcept override { return true; }
  ProcessGroupPtr make_device_channel(ProcessGroupPtr channel) override {
    return std::make_shared<NcclGroup>(std::move(channel), may_stage_, Use::Messages);
  }
  Tensor allocate(int64_t numel, DType dtype) override { return control_->allocate(numel, dtype); }
  Tensor allocate(int64_t numel, DType dtype, Device device) override {
    if (memory_ && device == device_ && numel >= 0) {
      const Tensor registered = memory_->allocate(numel, dtype);
      if (registered.defined()) return registered;
    }
    return ProcessGroup::allocate(numel, dtype, device);
  }

  void do_note_activity(const RankActivity& activity) override { control_->note_activity(activity); }
  void note_exception(bool has_ended) override { control_->note_exception(has_ended); }
  void note_failure(std::string_view reason) override {
    has_failed_ = true;
    control_->note_failure(reason);
  }
  std::string lost_peer() override { return control_->lost_peer(); }
  void abort(std::string_view reason) override {
    control_->abort(reason);
    works_.fail(std::make_exception_ptr(DistError("the nccl group was aborted on rank {}: {}", named(rank()), reason)));
  }

 protected:
  void do_progress() override { control_->progress(); }

  WorkPtr do_all_reduce(const Tensor& tensor, const CollectiveOptions& options) override {
    return one({CollectiveKind::AllReduce, tensor, {}, options});
  }
  WorkPtr do_broadcast(const Tensor& tensor, const CollectiveOptions& options) override {
    return one({CollectiveKind::Broadcast, tensor, {}, options});
  }
  WorkPtr do_all_gather(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return one({CollectiveKind::AllGather, output, input, options});
  }
  WorkPtr do_reduce_scatter(const Tensor& output, const Tensor& input, const CollectiveOptions& options) override {
    return one({CollectiveKind::ReduceScatter, output, input, options});
  }
  WorkPtr do_coalesced(std::span<const CollectiveCall> calls, SourceLocation where) override {
    if (is_on_host(calls.front().output)) return ProcessGroup::do_coalesced(calls, where);
    return on_device(calls, where, [&] { return record_coalesced(calls, where); });
  }

  WorkPtr do_barrier(const CollectiveOptions& options) override {
    return on_host([&] { return record(CollectiveKind::Barrier, Tensor(), options); }, options,
                   [&](const CollectiveOptions& how) { return meet(how); });
  }
  void do_monitored_barrier(const CollectiveOptions& options, std::chrono::milliseconds timeout) override {
    control_->monitored_barrier(timeout, options.where);
  }

 private:
  static bool is_on_host(const Tensor& tensor) { return tensor.device().type == DeviceType::CPU; }

  WorkPtr one(const CollectiveCall& call) {
    const auto enter = [&] { return record(call.kind, call.subject(), call.options); };
    if (!is_on_host(call.output)) return on_device({&call, 1}, call.options.where, enter);
    return on_host(enter, call.options, [&](const CollectiveOptions& how) { return on_control(call, how); });
  }

  WorkPtr on_control(const CollectiveCall& call, const CollectiveOptions& how) {
    switch (call.kind) {
      case CollectiveKind::AllReduce: return control_->all_reduce(call.output, how, how.where);
      case CollectiveKind::Broadcast: return control_->broadcast(call.output, how, how.where);
      case CollectiveKind::AllGather: return control_->all_gather(call.output, call.input, how, how.where);
      case CollectiveKind::ReduceScatter: return control_->reduce_scatter(call.output, call.input, how, how.where);
      case CollectiveKind::Barrier:
      case CollectiveKind::NewGroup:
      case CollectiveKind::Message: break;
    }
    return nullptr;
  }

  // A group of one rank: copies on the current stream, without NCCL.
  static void do_alone(const CollectiveCall& call) {
    const Device device = call.output.device();
    if (call.input.defined() && call.output.raw_data() != call.input.raw_data())
      device_runtime(device).copy_async(call.output.raw_data(), call.input.raw_data(), call.input.nbytes(),
                                        device.index);
  }

  // `post` is called with options that mark its collective as a step of this one.
  template <class Enter, class Post>
  WorkPtr on_host(const Enter& enter, const CollectiveOptions& options, const Post& post) {
    works_.throw_if_failed();
    const CollectiveInfo info = enter();
    CollectiveOptions how = options;
    if (!how.step_of) how.step_of = &info;
    nccl::Collective collective;
    collective.words = in_words(info);
    collective.met = post(how);
    collective.on_finish = [this, number = info.sequence] { recorder().finish(number); };
    return works_.add(std::move(collective));
  }

  // Issues one collective, or several together. `enter` records them in the flight recorder as one entry.
  template <class Enter>
  WorkPtr on_device(std::span<const CollectiveCall> calls, SourceLocation where, const Enter& enter) {
    works_.throw_if_failed();
    const Device device = calls.front().output.device();
    check_device(device, where);
    const CollectiveInfo info = enter();
    const CollectiveInfo* const step_of = calls.front().options.step_of;
    nccl::Collective collective;
    collective.words = in_words(step_of ? *step_of : info);
    if (is_alone_) {
      for (const CollectiveCall& call : calls)
        do_alone(call);
      recorder().finish(info.sequence);
      return works_.add(std::move(collective));
    }
    CollectiveOptions how{.description = info.text, .topic = info.topic, .iteration = info.iteration, .where = where};
    how.step_of = step_of ? step_of : &info;
    if (memory_) memory_->sweep();
    if (check_) collective.met = meet(how);
    const DeviceRuntime& runtime = device_runtime(device);
    collective.captured = runtime.is_capturing(device.index);
    if (collective.captured) runtime.on_replay(this, works_.replays(device));
    collective.begun = runtime.new_event(device.index, true);
    collective.done = runtime.new_event(device.index, true);
    collective.on_finish = [this, number = info.sequence] { recorder().finish(number); };
    ready_->record();
    try {
      const DeviceStreamGuard guard(*stream_);
      ready_->block();
      collective.begun->record();
      issue(calls, [&] { wait_for_peers(collective); });
      collective.done->record();
    } catch (...) {
      works_.throw_if_failed();
      fail_and_throw(explained(std::current_exception(), collective, how));
    }
    for (const CollectiveCall& call : calls) {
      collective.tensors.push_back(call.output);
      if (call.input.defined()) collective.tensors.push_back(call.input);
    }
    return works_.add(std::move(collective));
  }

  // Queues the calls on the stream. Calls without elements are skipped, which is the same on all ranks.
  void issue(std::span<const CollectiveCall> calls, const std::function<void()>& until_peers_come) {
    if (calls.size() == 1) {
      const CollectiveCall& call = calls.front();
      if (call.subject().numel() == 0) return;
      communicator_->call(
          function_of(call), [&](nccl::Comm comm) { return issue(call, comm); }, until_peers_come);
      return;
    }
    const auto all = [&](nccl::Comm comm) {
      nccl::Result result = nccl::Result::Success;
      for (const CollectiveCall& call : calls) {
        if (call.subject().numel() > 0) result = issue(call, comm);
        if (!nccl::is_queued(result)) break;
      }
      return result;
    };
    communicator_->call_together(all, until_peers_come);
  }

  // NCCL waits for all peers to connect them; the host group knows which of them are missing.
  void wait_for_peers(const nccl::Collective& collective) {
    if (!collective.met) return;
    try {
      collective.met->wait();
    } catch (...) {
      works_.fail(std::current_exception());
      throw;
    }
  }

  const char* function_of(const CollectiveCall& call) const {
    if (use_ == Use::Messages) return call.options.root == rank() ? "ncclSend" : "ncclRecv";
    constexpr const char* kFunctions[] = {"ncclAllReduce", "ncclBroadcast", "ncclAllGather", "ncclReduceScatter"};
    return kFunctions[static_cast<int>(call.kind)];
  }

  nccl::Result issue(const CollectiveCall& call, nccl::Comm comm) const {
    const Tensor& from = call.subject();
    void* const to = call.output.raw_data();
    const auto count = static_cast<size_t>(std::min(from.numel(), call.output.numel()));  // of one rank's part
    const nccl::DataType type = type_of(from.dtype());
    const nccl::RedOp op = op_of(call.options.op, from.dtype());
    void* const stream = stream_->handle();
    if (use_ == Use::Messages) {
      const int peer = 1 - rank();
      return call.options.root == rank() ? library_->send(from.raw_data(), count, type, peer, comm, stream)
                                         : library_->recv(to, count, type, peer, comm, stream);
    }
    switch (call.kind) {
      case CollectiveKind::AllReduce: return library_->all_reduce(from.raw_data(), to, count, type, op, comm, stream);
      case CollectiveKind::Broadcast:
        return library_->broadcast(from.raw_data(), to, count, type, call.options.root, comm, stream);
      case CollectiveKind::AllGather: return library_->all_gather(from.raw_data(), to, count, type, comm, stream);
      case CollectiveKind::ReduceScatter:
        return library_->reduce_scatter(from.raw_data(), to, count, type, op, comm, stream);
      case CollectiveKind::Barrier:
      case CollectiveKind::NewGroup:
      case CollectiveKind::Message: break;
    }
    return nccl::Result::InvalidArgument;
  }

  // Throws the first failure, since another thread may already have aborted the communicator.
  [[noreturn]] void fail_and_throw(const std::exception_ptr& error) {
    works_.fail(error);
    works_.throw_if_failed();
    std::rethrow_exception(error);
  }

  // Adds the host group's knowledge to an error of NCCL.
  std::exception_ptr explained(std::exception_ptr error, const nccl::Collective& collective,
                               const CollectiveOptions& how) {
    try {
      std::rethrow_exception(error);
    } catch (const PeerError&) {
      return reason_for(error, collective.met, how);
    } catch (const TimeoutError& late) {
      const std::string lost = control_->lost_peer();
      return std::make_exception_ptr(TimeoutError("{}: {}; {}", collective.words, late.what(),
                                                  !lost.empty()    ? lost
                                                  : collective.met ? "all ranks have called it"
                                                                   : "it is not known which ranks have called it"));
    } catch (...) {
      return error;
    }
  }

  // NCCL failed because of a peer: the host group knows which one and why, at the latest when the ranks meet once more.
  std::exception_ptr reason_for(std::exception_ptr error, const WorkPtr& met, const CollectiveOptions& how) {
    const auto patience = std::min<std::chrono::milliseconds>(timeout(), nccl::kReasonsTake);
    try {
      if (met) met->wait(patience);
      if (met) meet(how)->wait(patience);
    } catch (const TimeoutError&) {
    } catch (...) {
      error = std::current_exception();
    }
    return error;
  }

  // Announces over the host group what this rank has posted.
  WorkPtr meet(const CollectiveOptions& how) {
    const Tensor token = empty({1}, kInt32);
    *token.data_ptr<int32_t>() = 0;
    return control_->all_reduce(token, how, how.where);
  }

  void check_device(Device device, SourceLocation where) const {
    if (!communicator_ || device == device_) return;
    throw DeviceError(where,
                      "nccl: this group has its communicator on {}, and got a tensor on {}; make a group per device",
                      to_string(device_), to_string(device));
  }

  // Makes the communicator, or finds that the ranks cannot have one. Collective.
  void connect(Device device, SourceLocation where) {
    Seat own;
    const Tensor id = control_->allocate(sizeof(nccl::UniqueId), kUInt8);
    auto* const unique = static_cast<nccl::UniqueId*>(id.raw_data());
    try {
      if (nccl::may_share_gpu()) nccl::pose_as_host(named(rank()).global);
      library_ = &nccl::library();
      own = {"", host_identity(), device_runtime(device).bus_id(device.index), to_string(device),
             nccl::version_in_words(library_->version)};
      if (rank() == 0) {
        if (const nccl::Result result = library_->get_unique_id(unique); result != nccl::Result::Success)
          throw DistError("ncclGetUniqueId: {}", library_->get_error_string(result));
      }
    } catch (const Error& error) {
      own.trouble = error.what();
      std::ranges::replace(own.trouble, '\n', ' ');
    }
    std::vector<Seat> seats;
    for (const std::string& text : control_->all_gather_text(own.to_text(), "the communicator of NCCL", where))
      seats.push_back(Seat::from_text(text));
    try {
      check_seats(seats, where);
    } catch (const DistError&) {
      if (!may_stage_) throw;
      way_ = Way::Staged;
      return;
    }
    way_ = Way::Nccl;
    device_ = device;
    if (is_alone_) return;
    control_->broadcast(id, {.description = "the communicator of NCCL"}, where)->wait();
    set_current_device(device);
    try {
      take(std::make_shared<nccl::Communicator>(*library_, *unique, rank(), size(), device, timeout(), named(rank())));
    } catch (...) {
      works_.fail(std::current_exception());
      throw;
    }
  }

  // Uses `communicator` for all later collectives on its device.
  void take(std::shared_ptr<nccl::Communicator> communicator) {
    const DeviceRuntime& runtime = device_runtime(device_);
    stream_ = runtime.new_stream(device_.index);
    ready_ = runtime.new_event(device_.index);
    communicator_ = std::move(communicator);
    memory_ = std::make_shared<nccl::RegisteredMemory>(*library_, communicator_, stream_, device_);
    works_.watch(communicator_, device_);
  }

  // The members' part of this group's communicator. Null when this group has none, or without ncclCommSplit: then the
  // members make one at their first device tensor, like any group.
  std::shared_ptr<nccl::Communicator> split(const Subgroup& members) {
    if (!communicator_ || !library_->comm_split || (members.size() == 1 && !nccl::connects_one_rank())) return nullptr;
    try {
      // NCCL requires that no work is pending.
      if (!works_.finish_within(timeout())) {
        works_.throw_if_failed();
        throw TimeoutError(members.where,
                           "new_group: what was queued on {} before did not come to its end within {} ms on rank {}",
                           to_string(device_), timeout().count(), named(rank()));
      }
      const DeviceStreamGuard guard(*stream_);  // the device is current
      return communicator_->split(members.rank, members.timeout, named(rank()));
    } catch (...) {
      fail_and_throw(std::current_exception());
    }
  }

  // The same error on all ranks.
  void check_seats(const std::vector<Seat>& seats, SourceLocation where) const {
    for (size_t r = 0; r < seats.size(); ++r) {
      if (!seats[r].trouble.empty())
        throw DistError(where, "nccl: rank {} cannot use it: {}", named(static_cast<int>(r)), seats[r].trouble);
    }
    for (size_t r = 1; r < seats.size(); ++r) {
      if (seats[r].version != seats[0].version)
        throw DistError(where, "nccl: rank {} has version {}, rank {} has {}; all ranks need the same", named(0),
                        seats[0].version, named(static_cast<int>(r)), seats[r].version);
      for (size_t other = 0; other < r; ++other) {
        if (seats[other].host == seats[r].host && seats[other].bus == seats[r].bus && !nccl::may_share_gpu())
          throw DistError(
              where,
              "nccl: ranks {} and {} share a GPU ({}, {}), and NCCL takes one rank for each; give each rank "
              "its own, or use shm or gloo, where ranks may share one",
              named(static_cast<int>(other)), named(static_cast<int>(r)), seats[r].device, seats[r].bus);
      }
    }
  }

  void on_failure(const std::exception_ptr& error) {
    has_failed_ = true;
    if (communicator_) communicator_->abort();
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& known) {
      control_->abort(known.what());
      write_record(known.what());
    } catch (...) {
      control_->abort("an exception that is none of the standard's");
    }
  }

  // The transport of device tensors. Open: not chosen yet.
  enum class Way : uint8_t { Open, Nccl, Staged };

  const ProcessGroupPtr control_;
  const bool may_stage_;
  const Use use_;
  Way way_ = Way::Open;
  const bool check_ = compares_collectives();
  const bool is_alone_ = size() == 1 && !nccl::connects_one_rank();  // nothing is sent
  std::atomic<bool> has_failed_{false};
  const nccl::Library* library_ = nullptr;
  Device device_;
  std::shared_ptr<DeviceStream> stream_;
  std::unique_ptr<DeviceEvent> ready_;
  std::shared_ptr<nccl::Communicator> communicator_;
  std::shared_ptr<nccl::RegisteredMemory> memory_;
  nccl::Works works_;  // last: its thread uses the other members
};

}  // namespace

ProcessGroupPtr make_nccl_group(ProcessGroupPtr control) {
  if (!control) throw ValueError("make_nccl_group: expected a process group of the host, got none");
  return std::make_shared<NcclGroup>(std::move(control), false);
}

ProcessGroupPtr make_nccl_or_staged_group(ProcessGroupPtr control) {
  if (!control) throw ValueError("make_nccl_or_staged_group: expected a process group of the host, got none");
  return std::make_shared<NcclGroup>(std::move(control), true);
}

}  // namespace brigade::dist
