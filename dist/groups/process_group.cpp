// Checks and records every collective before the transport gets it, coalesces calls that are issued together, and
// stages device tensors.
#include <brigade/dist/groups/process_group.h>

#include <brigade/autograd/tape.h>
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/dist/errors/collective_info.h>
#include <brigade/dist/groups/channels.h>
#include <brigade/dist/groups/coalescing.h>
#include <brigade/dist/groups/group_memory.h>
#include <brigade/dist/groups/own_collectives.h>
#include <brigade/dist/groups/staging.h>
#include <brigade/dist/groups/work_queue.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace brigade::dist {
namespace {

void check_tensor(const Tensor& tensor, const char* what, SourceLocation where) {
  if (!tensor.defined()) throw ValueError(where, "{}: the tensor is undefined", what);
  if (!tensor.is_contiguous()) {
    throw ShapeError(where, "{}: expected a contiguous tensor, got {} with strides {}; use contiguous()", what,
                     describe(tensor), tensor.strides());
  }
}

// A collective's result has no gradient path to its input. Records this on the tape, so that a missing gradient can be
// explained.
void note_on_tape(const char* what, const Tensor& output, const Tensor& input, SourceLocation where) {
  autograd::Tape* tape = autograd::Tape::current();
  if (!tape || output.requires_grad()) return;
  const Tensor* inputs[] = {&input};
  const Tensor* outputs[] = {&output};
  tape->append(what, where, inputs, outputs, autograd::Cut::Collective, where);
}

void check_one_device(const Tensor& a, const Tensor& b, const char* what, SourceLocation where) {
  if (a.device() == b.device()) return;
  throw DeviceError(where, "{}: expected both tensors on one device, got {} and {}", what, describe(a), describe(b));
}

void check_sizes(const ProcessGroup& group, const Tensor& large, const Tensor& small, const char* what,
                 SourceLocation where) {
  if (group.rank() < 0) return;  // not a member: the collective throws
  if (large.dtype() == small.dtype() && large.numel() == group.size() * small.numel()) return;
  throw ShapeError(where, "{}: expected {} elements of one dtype ({} ranks x {}), got {} and {}", what,
                   group.size() * small.numel(), group.size(), small.numel(), describe(large), describe(small));
}

// Posts the calls one by one, each as a part of the coalesced collective.
template <class Post>
WorkPtr post_parts(std::span<const CollectiveCall> calls, const Post& post) {
  std::vector<WorkPtr> works;
  for (size_t i = 0; i < calls.size(); ++i) {
    CollectiveCall part = calls[i];
    part.options.part = static_cast<uint32_t>(i + 1);
    part.options.parts = static_cast<uint32_t>(calls.size());
    works.push_back(post(part));
  }
  return combined_work(std::move(works));
}

}  // namespace

ProcessGroup::ProcessGroup(int rank, int size, std::chrono::milliseconds timeout, RankNames names)
    : rank_(rank), size_(size), timeout_(timeout), names_(std::move(names)) {}

ProcessGroup::~ProcessGroup() = default;

Tensor ProcessGroup::allocate(int64_t numel, DType dtype, Device device) {
  if (device.type == DeviceType::CPU) return allocate(numel, dtype);
  return memory_of_group(this, numel, dtype, device, [device](size_t bytes) { return allocate_on(device, bytes); });
}

std::shared_ptr<ProcessGroup> ProcessGroup::make_subgroup(const Subgroup&) {
  throw DistError(
      "new_group: the backend {} cannot make groups of some of its ranks: its class does not override "
      "ProcessGroup::make_subgroup",
      backend());
}

std::shared_ptr<ProcessGroup> ProcessGroup::make_channel(const Subgroup&) {
  throw DistError(
      "the backend {} sends no messages between two ranks: its class does not override ProcessGroup::make_channel",
      backend());
}

std::shared_ptr<ProcessGroup> ProcessGroup::make_device_channel(std::shared_ptr<ProcessGroup>) {
  throw DistError("the backend {} sends no tensors of devices", backend());
}

Channels& ProcessGroup::channels() {
  const std::lock_guard lock(channels_mutex_);
  if (!channels_) channels_ = std::make_unique<Channels>(*this);
  return *channels_;
}

void ProcessGroup::end_channels() noexcept { channels_.reset(); }

void ProcessGroup::post_staged() {
  if (staging_) staging_->post_all();
}

WorkPtr ProcessGroup::run(const CollectiveCall& call) {
  note_posted();
  if (coalescing_) return coalescing_->add(call);
  const Device device = call.output.device();
  if (device.type != DeviceType::CPU) choose_way(device, call.options.where);
  if (!reaches(device)) return stage(call);
  post_staged();
  return perform(call);
}

WorkPtr ProcessGroup::perform(const CollectiveCall& call) {
  switch (call.kind) {
    case CollectiveKind::AllReduce: return do_all_reduce(call.output, call.options);
    case CollectiveKind::Broadcast: return do_broadcast(call.output, call.options);
    case CollectiveKind::AllGather: return do_all_gather(call.output, call.input, call.options);
    case CollectiveKind::ReduceScatter: return do_reduce_scatter(call.output, call.input, call.options);
    case CollectiveKind::Barrier:
    case CollectiveKind::NewGroup:
    case CollectiveKind::Message: break;
  }
  return nullptr;
}

WorkPtr ProcessGroup::stage(const CollectiveCall& call) {
  if (!staging_) staging_ = std::make_unique<Staging>();
  std::vector<Tensor> tensors{call.output};
  if (call.input.defined()) tensors.push_back(call.input);
  const bool is_broadcast = call.kind == CollectiveKind::Broadcast;
  const bool is_root = is_broadcast && rank() == call.options.root;
  const uint32_t reads = call.input.defined() ? 2 : !is_broadcast || is_root;
  const uint32_t writes = !is_root;
  CollectiveCall without = call;
  without.output = without.input = Tensor();
  return staging_->stage(std::move(tensors), reads, writes,
                         [this, kept = KeptCall(without)](std::span<const Tensor> on_host) {
                           CollectiveCall copies = kept.get();
                           copies.output = on_host[0];
                           if (on_host.size() > 1) copies.input = on_host[1];
                           return perform(copies);
                         });
}

WorkPtr ProcessGroup::post_coalesced(std::span<const CollectiveCall> calls, SourceLocation where) {
  const Device device = calls.front().output.device();
  if (device.type != DeviceType::CPU) choose_way(device, where);
  if (!reaches(device)) return post_parts(calls, [this](const CollectiveCall& part) { return stage(part); });
  post_staged();
  return do_coalesced(calls, where);
}

WorkPtr ProcessGroup::do_coalesced(std::span<const CollectiveCall> calls, SourceLocation) {
  return post_parts(calls, [this](const CollectiveCall& part) { return perform(part); });
}

void ProcessGroup::refuse_while_coalescing(const char* what, SourceLocation where) const {
  if (!coalescing_) return;
  throw DistError(where,
                  "{}: it waits for the other ranks, and what the coalescing manager of {} has collected is not "
                  "issued yet; end the manager first",
                  what, coalescing_->where());
}

void ProcessGroup::forget_staged() noexcept { staging_.reset(); }

void ProcessGroup::progress() {
  if (staging_) staging_->progress();
  do_progress();
}

WorkPtr ProcessGroup::all_reduce(const Tensor& tensor, CollectiveOptions options, SourceLocation where) {
  check_tensor(tensor, "all_reduce", where);
  if (options.op == ReduceOp::Avg && !is_floating_point(tensor.dtype())) {
    throw DTypeError(where, "all_reduce: avg needs a floating dtype, got {}", describe(tensor));
  }
  options.where = where;
  note_on_tape("all_reduce", tensor, tensor, where);
  note_all_reduce(tensor, options.op, size(), where);
  return run({CollectiveKind::AllReduce, tensor, {}, options});
}

bool compares_collectives() noexcept {
  const char* const given = std::getenv("BRIGADE_COLLECTIVE_CHECK");
  return !(given && std::strcmp(given, "0") == 0);
}

WorkPtr ProcessGroup::broadcast(const Tensor& tensor, CollectiveOptions options, SourceLocation where) {
  check_tensor(tensor, "broadcast", where);
  if (rank() >= 0 && (options.root < 0 || options.root >= size())) {
    throw ValueError(where, "broadcast: root {} is not a rank 0..{}", options.root, size() - 1);
  }
  options.where = where;
  note_on_tape("broadcast", tensor, tensor, where);
  return run({CollectiveKind::Broadcast, tensor, {}, options});
}

WorkPtr ProcessGroup::all_gather(const Tensor& output, const Tensor& input, CollectiveOptions options,
                                 SourceLocation where) {
  check_tensor(output, "all_gather", where);
  check_tensor(input, "all_gather", where);
  check_sizes(*this, output, input, "all_gather", where);
  check_one_device(output, input, "all_gather", where);
  options.where = where;
  note_on_tape("all_gather", output, input, where);
  return run({CollectiveKind::AllGather, output, input, options});
}

WorkPtr ProcessGroup::reduce_scatter(const Tensor& output, const Tensor& input, CollectiveOptions options,
                                     SourceLocation where) {
  check_tensor(output, "reduce_scatter", where);
  check_tensor(input, "reduce_scatter", where);
  check_sizes(*this, input, output, "reduce_scatter", where);
  check_one_device(output, input, "reduce_scatter", where);
  options.where = where;
  note_on_tape("reduce_scatter", output, input, where);
  return run({CollectiveKind::ReduceScatter, output, input, options});
}

CollectiveInfo ProcessGroup::described(CollectiveKind kind, const Tensor& tensor,
                                       const CollectiveOptions& options) const {
  CollectiveInfo info;
  info.kind = kind;
  if (kind == CollectiveKind::AllReduce || kind == CollectiveKind::ReduceScatter) info.op = options.op;
  if (kind == CollectiveKind::Broadcast) info.root = named(options.root).number;
  if (tensor.defined()) {
    info.dtype = tensor.dtype();
    info.count = tensor.numel();
  }
  info.topic = options.topic;
  info.text = options.description;
  info.part = options.part;
  info.parts = options.parts;
  info.iteration = options.iteration;
  info.where = options.where;
  return info;
}

CollectiveInfo ProcessGroup::record(CollectiveKind kind, const Tensor& tensor, const CollectiveOptions& options) {
  CollectiveInfo info = described(kind, tensor, options);
  info.sequence = recorder_.begin(info);
  return info;
}

CollectiveInfo ProcessGroup::record_coalesced(std::span<const CollectiveCall> calls, SourceLocation where) {
  std::vector<CollectiveInfo> parts;
  for (const CollectiveCall& call : calls)
    parts.push_back(described(call.kind, call.subject(), call.options));
  CollectiveInfo whole = as_one(parts);
  whole.where = where;
  whole.sequence = recorder_.begin(whole);
  return whole;
}

void ProcessGroup::monitored_barrier(std::chrono::milliseconds timeout, SourceLocation where) {
  refuse_while_coalescing("monitored_barrier", where);
  CollectiveOptions options{.description = "monitored barrier"};
  options.where = where;
  post_staged();
  do_monitored_barrier(options, timeout);
}

void ProcessGroup::do_monitored_barrier(const CollectiveOptions& options, std::chrono::milliseconds timeout) {
  do_barrier(options)->wait(timeout);
}

void ProcessGroup::write_record(const std::string& reason) const noexcept {
  if (!names_.own()) return;
  const std::vector<int> globals = names_.of_subgroup() ? names_.globals(size_) : std::vector<int>();
  recorder_.write({rank_, size_, globals, names_.identity(), backend()}, reason);
}

void ProcessGroup::barrier(CollectiveOptions options, SourceLocation where) {
  refuse_while_coalescing("barrier", where);
  options.where = where;
  post_staged();
  do_barrier(options)->wait();
}

void ProcessGroup::note_activity(std::string_view what, SourceLocation where) {
  RankActivity activity;
  activity.doing = what.empty() ? Doing::Nothing : Doing::Program;
  activity.text = what;
  activity.where = where;
  do_note_activity(activity);
}

std::vector<std::string> ProcessGroup::all_gather_text(std::string_view text, std::string_view description,
                                                       SourceLocation where) {
  return gather_texts(text, {.description = description}, where);
}

std::vector<std::string> ProcessGroup::all_gather_text(std::string_view text, const Topic& topic,
                                                       SourceLocation where) {
  return gather_texts(text, {.topic = topic}, where);
}

std::vector<std::string> ProcessGroup::gather_texts(std::string_view text, const CollectiveOptions& options,
                                                    SourceLocation where) {
  refuse_while_coalescing("all_gather_text", where);
  const Tensor length = allocate(1, kInt64);
  const Tensor lengths = allocate(size(), kInt64);
  *length.data_ptr<int64_t>() = static_cast<int64_t>(text.size());
  all_gather(lengths, length, options, where)->wait();
  const int64_t* each = lengths.data_ptr<int64_t>();
  const int64_t longest = std::max<int64_t>(*std::max_element(each, each + size()), 1);
  const Tensor mine = allocate(longest, kUInt8);
  const Tensor all = allocate(size() * longest, kUInt8);
  std::memset(mine.raw_data(), 0, static_cast<size_t>(longest));
  if (!text.empty()) std::memcpy(mine.raw_data(), text.data(), text.size());
  all_gather(all, mine, options, where)->wait();
  std::vector<std::string> result;
  const char* bytes = static_cast<const char*>(all.raw_data());
  for (int rank = 0; rank < size(); ++rank)
    result.emplace_back(bytes + rank * longest, static_cast<size_t>(each[rank]));
  return result;
}

// --- Memory of buckets, for every kind of group.

Tensor memory_of_group(const void* home, int64_t numel, DType dtype, Device device,
                       const std::function<Allocation(size_t bytes)>& allocate) {
  if (numel < 0) throw ShapeError("allocate: the number of elements must not be negative, got {}", numel);
  const size_t bytes = checked_bytes(numel, itemsize(dtype));
  auto storage = make_intrusive<Storage>(allocate(bytes), bytes, device, home);
  return Tensor(make_intrusive<TensorImpl>(std::move(storage), Shape{numel}, Shape{1}, 0, dtype));
}

Tensor room_to_exchange(ProcessGroup& group, int64_t numel, DType dtype, Device device) {
  return device == Device() ? group.allocate(numel, dtype) : empty({numel}, {dtype, device});
}

}  // namespace brigade::dist
