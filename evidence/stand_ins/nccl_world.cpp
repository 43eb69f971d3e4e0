// Runs the commands of the ranks: decides when a command is ready, and computes its result.
#include "nccl_world.h"

#include <brigade/core/fnv.h>

#include <atomic>
#include <cstring>
#include <span>

namespace brigade::test::nccl {
namespace {

thread_local std::string last_error;

DType dtype_of(DataType type) {
  switch (type) {
    case DataType::Int32: return kInt32;
    case DataType::Int64: return kInt64;
    case DataType::Float16: return kFloat16;
    case DataType::Float32: return kFloat32;
    case DataType::Float64: return kFloat64;
    case DataType::Bfloat16: return kBFloat16;
    default: return kUInt8;
  }
}

size_t bytes_sent(const Call& call, size_t ranks) {
  const size_t elements = call.kind == Call::ReduceScatter ? ranks * call.count : call.count;
  return elements * itemsize(dtype_of(call.type));
}

template <class T>
void reduce_into(std::span<const T* const> inputs, RedOp op, size_t begin, size_t count, Bytes& result) {
  using C = compute_type<T>;
  result.resize(count * sizeof(T));
  T* const out = reinterpret_cast<T*>(result.data());
  for (size_t i = 0; i < count; ++i) {
    const auto value = [&](size_t rank) {
      const C x = static_cast<C>(inputs[rank][begin + i]);
      if constexpr (is_floating_point(brigade::dtype_of<T>)) {
        if (op == RedOp::Avg)
          return static_cast<C>(
              static_cast<T>(x * static_cast<C>(static_cast<T>(C(1) / static_cast<C>(inputs.size())))));
      }
      return x;
    };
    C sum = value(0);
    for (size_t rank = 1; rank < inputs.size(); ++rank) {
      const C next = value(rank);
      sum = op == RedOp::Max   ? (next > sum ? next : sum)
            : op == RedOp::Min ? (next < sum ? next : sum)
                               : static_cast<C>(sum + next);
      sum = static_cast<C>(static_cast<T>(sum));
    }
    out[i] = static_cast<T>(sum);
  }
}

// Computes the part at index `place` for all ranks.
void compute(Meeting& meeting, size_t place) {
  const size_t ranks = meeting.calls.size();
  const Call& first = meeting.calls[0][place];
  const size_t itemsize = brigade::itemsize(dtype_of(first.type));
  for (size_t rank = 0; rank < ranks; ++rank) {
    Bytes& result = meeting.results[rank].emplace_back();
    if (first.kind == Call::Broadcast) {
      const auto* from = static_cast<const unsigned char*>(meeting.calls[static_cast<size_t>(first.root)][place].from);
      result.assign(from, from + first.count * itemsize);
    } else if (first.kind == Call::AllGather) {
      for (size_t peer = 0; peer < ranks; ++peer) {
        const auto* from = static_cast<const unsigned char*>(meeting.calls[peer][place].from);
        result.insert(result.end(), from, from + first.count * itemsize);
      }
    } else {
      const size_t begin = first.kind == Call::ReduceScatter ? rank * first.count : 0;
      visit_dtype(dtype_of(first.type), [&]<class T>() {
        std::vector<const T*> inputs;
        for (const auto& calls : meeting.calls)
          inputs.push_back(static_cast<const T*>(calls[place].from));
        reduce_into<T>(inputs, first.op, begin, first.count, result);
      });
    }
  }
}

uint64_t sum_of(const Call& call, size_t ranks) {
  return fnv({static_cast<const char*>(call.from), bytes_sent(call, ranks)});
}

// A rank's command: a single call, or the calls of a group. In a graph, it runs again on each replay.
struct Part {
  std::shared_ptr<World> world;
  size_t rank = 0;
  std::vector<Call> collectives, messages;
  // Set once the command is at the front of its stream.
  bool arrived = false;
  std::shared_ptr<Meeting> meeting = nullptr;  // of the collectives, if any
  uint64_t number = 0;
  std::vector<std::pair<size_t, uint64_t>> keys;  // of the messages

  std::pair<size_t, uint64_t> next_key(const Call& call) const {
    const size_t way = call.sender(rank) * world->size + call.receiver(rank);
    return {way, world->next_message[(call.kind == Call::Send ? 0 : world->size * world->size) + way]++};
  }
};

// The caller must hold the world's lock.
void arrive(Part& part) {
  World& world = *part.world;
  part.arrived = true;
  if (!part.collectives.empty()) {
    part.number = world.next[part.rank]++;
    std::shared_ptr<Meeting>& found = world.meetings[part.number];
    if (!found) found = std::make_shared<Meeting>(world.size);
    part.meeting = found;
    part.meeting->calls[part.rank] = part.collectives;
    for (const Call& call : part.collectives)
      part.meeting->sums[part.rank].push_back(sum_of(call, world.size));
  }
  for (const Call& call : part.messages) {
    part.keys.push_back(part.next_key(call));
    std::shared_ptr<Message>& found = world.messages[part.keys.back()];
    if (!found) found = std::make_shared<Message>();
    (call.kind == Call::Send ? found->send : found->receive) = call;
    if (call.kind == Call::Send) found->sum = sum_of(call, world.size);
  }
}

bool have_met(const World& world, const Meeting& meeting, const std::vector<Call>& own) {
  if (meeting.computed) return true;
  for (size_t peer = 0; peer < world.size; ++peer) {
    const std::vector<Call>& theirs = meeting.calls[peer];
    if (world.aborted[peer] || theirs.size() != own.size()) return false;
    for (size_t i = 0; i < own.size(); ++i)
      if (!theirs[i].fits(own[i])) return false;
  }
  return true;
}

// Whether the command at the front of its stream may run. Called with the runtime's lock held.
bool is_ready(Part& part) {
  World& world = *part.world;
  const std::lock_guard lock(world.mutex);
  if (world.aborted[part.rank]) return true;
  if (!part.arrived) arrive(part);
  if (part.meeting && !have_met(world, *part.meeting, part.collectives)) return false;
  for (size_t i = 0; i < part.messages.size(); ++i) {
    const Message& message = *world.messages[part.keys[i]];
    if (!message.taken && (!message.fits() || world.aborted[static_cast<size_t>(part.messages[i].root)])) return false;
  }
  return true;
}

void require_unchanged(const Call& call, size_t ranks, uint64_t sum, size_t rank, const char* what) {
  if (sum_of(call, ranks) == sum) return;
  throw simt::Error("stand-in for NCCL: rank " + std::to_string(rank) + " wrote what it sends while the " + what +
                    " was under way");
}

void run_collectives(Part& part) {
  World& world = *part.world;
  const std::shared_ptr<Meeting> kept = std::exchange(part.meeting, nullptr);
  Meeting& meeting = *kept;
  if (!meeting.computed) {
    for (size_t place = 0; place < part.collectives.size(); ++place) {
      for (size_t peer = 0; peer < world.size; ++peer) {
        const Call& call = meeting.calls[peer][place];
        const bool sends = call.kind != Call::Broadcast || static_cast<size_t>(call.root) == peer;
        if (sends) require_unchanged(call, world.size, meeting.sums[peer][place], peer, "collective");
      }
      compute(meeting, place);
    }
    meeting.computed = true;
    meeting.left = world.size;
  }
  for (size_t place = 0; place < part.collectives.size(); ++place) {
    const Bytes& result = meeting.results[part.rank][place];
    std::memcpy(part.collectives[place].to, result.data(), result.size());
  }
  if (--meeting.left == 0) world.meetings.erase(part.number);
}

void run_message(World& world, const Call& call, const std::pair<size_t, uint64_t>& key) {
  const std::shared_ptr<Message> message = world.messages[key];
  if (!message->taken) {
    require_unchanged(*message->send, world.size, message->sum, key.first / world.size, "message");
    const auto* from = static_cast<const unsigned char*>(message->send->from);
    message->taken.emplace(from, from + bytes_sent(*message->send, world.size));
  }
  if (call.kind == Call::Recv) std::memcpy(call.to, message->taken->data(), message->taken->size());
  if (--message->left == 0) world.messages.erase(key);
}

void run(Part& part) {
  World& world = *part.world;
  const std::lock_guard lock(world.mutex);
  if (world.aborted[part.rank]) return;
  part.arrived = false;
  const auto keys = std::exchange(part.keys, {});
  if (part.meeting) run_collectives(part);
  for (size_t i = 0; i < part.messages.size(); ++i)
    run_message(world, part.messages[i], keys[i]);
}

// The calls of a thread since ncclGroupStart.
struct Group {
  struct OnStream {
    Comm comm;
    Launch launch;
  };
  int depth = 0;
  Result refused = Result::Success;
  std::vector<OnStream> commands;
};
thread_local Group group;

std::atomic<size_t> commands{0};
std::atomic<int> answers{2};

Result enqueue(Comm comm, const Launch& launch) {
  const auto part = std::make_shared<Part>();
  part->world = comm->world;
  part->rank = comm->rank;
  for (const Call& call : launch.calls)
    (call.is_message() ? part->messages : part->collectives).push_back(call);
  int device = 0;
  cudaGetDevice(&device);
  cudaSetDevice(comm->device);
  const cudaError_t code = simt::enqueue(
      static_cast<cudaStream_t>(launch.stream), [part] { run(*part); }, [part] { return is_ready(*part); });
  cudaSetDevice(device);
  if (code != cudaSuccess) return refuse(Result::UnhandledCudaError, cudaGetErrorString(code));
  ++commands;
  return Result::Success;
}

// A communicator of one rank needs no thread and is never in progress.
Result begin(Comm comm, const Launch& launch) {
  World& world = *comm->world;
  if (world.size == 1) return enqueue(comm, launch);
  const std::lock_guard lock(world.mutex);
  for (const Call& call : launch.calls)
    world.come(comm->rank, call);
  comm->launches.push_back(launch);
  comm->answers_left = answers;
  return Result::InProgress;
}

Result check(Comm comm, const Call& call) {
  if (!comm) return refuse(Result::InvalidArgument, "comm is NULL");
  World& world = *comm->world;
  if (comm->finalizing) return refuse(Result::InvalidUsage, "the communicator was finalized");
  if (const Result settled = require_settled(comm); settled != Result::Success) return settled;
  int device = 0;
  cudaGetDevice(&device);
  if (device != comm->device) return refuse(Result::InvalidUsage, "the current device is not the communicator's");
  for (const void* data : {call.from, static_cast<const void*>(call.to)}) {
    if (call.count == 0 || (call.is_message() && !data)) continue;
    cudaPointerAttributes attributes{};
    cudaPointerGetAttributes(&attributes, data);
    if (attributes.type != cudaMemoryTypeDevice || attributes.device != device)
      return refuse(Result::InvalidArgument, "a buffer is not memory of device " + std::to_string(device));
  }
  const bool names_a_rank = call.kind == Call::Broadcast || call.is_message();
  if (names_a_rank && (call.root < 0 || static_cast<size_t>(call.root) >= world.size))
    return refuse(Result::InvalidArgument, "root or peer " + std::to_string(call.root) + " is no rank");
  const std::lock_guard lock(world.mutex);
  if (world.given_up) return refuse(Result::RemoteError, "a rank has given up the communicator");
  return Result::Success;
}

}  // namespace

Result refuse(Result result, std::string why) {
  last_error = std::move(why);
  return result;
}

const std::string& latest_refusal() { return last_error; }

Result queue(Comm comm, const Call& call, void* stream) {
  const Result allowed = check(comm, call);
  if (group.depth == 0) return allowed == Result::Success ? begin(comm, {{call}, stream}) : allowed;
  if (allowed != Result::Success) {
    if (group.refused == Result::Success) group.refused = allowed;
    return allowed;
  }
  for (Group::OnStream& each : group.commands) {
    if (each.comm != comm || each.launch.stream != stream) continue;
    each.launch.calls.push_back(call);
    return Result::Success;
  }
  group.commands.push_back({comm, {{call}, stream}});
  return Result::Success;
}

Result begin_group() {
  ++group.depth;
  return Result::Success;
}

Result end_group() {
  if (group.depth == 0) return refuse(Result::InvalidUsage, "ncclGroupEnd without ncclGroupStart");
  if (--group.depth > 0) return Result::Success;
  const Group ended = std::exchange(group, {});
  if (ended.refused != Result::Success) return ended.refused;
  Result result = Result::Success;
  for (const Group::OnStream& each : ended.commands) {
    const Result begun = begin(each.comm, each.launch);
    if (begun != Result::Success && begun != Result::InProgress) return begun;
    if (begun == Result::InProgress) result = begun;
  }
  return result;
}

Result launch_when_connected(Comm comm) {
  World& world = *comm->world;
  std::vector<Launch> launches;
  {
    const std::lock_guard lock(world.mutex);
    if (comm->launches.empty()) return Result::Success;
    for (const Launch& launch : comm->launches)
      for (const Call& call : launch.calls)
        if (!world.is_connected(comm->rank, call)) return Result::InProgress;
    if (comm->answers_left-- > 0) return Result::InProgress;
    launches = std::exchange(comm->launches, {});
  }
  for (const Launch& launch : launches) {
    if (const Result queued = enqueue(comm, launch); queued != Result::Success) return queued;
  }
  return Result::Success;
}

Result require_settled(Comm comm) {
  const std::lock_guard lock(comm->world->mutex);
  if (comm->launches.empty()) return Result::Success;
  return refuse(Result::InvalidArgument,
                "Attempt to use communicator before the previous operation returned ncclSuccess");
}

int answer_in_progress(int times) { return answers.exchange(times); }

size_t commands_queued() { return commands; }

}  // namespace brigade::test::nccl
