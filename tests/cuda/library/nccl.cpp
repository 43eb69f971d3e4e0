// A stand-in for NCCL: the ranks are threads of this process, each with an emulated device of its own.
//
// A collective is a command in the stream of each rank, or in a graph. It is ready when every rank's has come to the
// front of its stream; the first that runs then takes all inputs and computes all results, and each command writes its own rank's
// result. So what a rank writes too early, or reads too late, goes wrong here as it would there: the stand-in keeps a
// sum of what each rank sends from the moment its command was at the front, and refuses when it has changed.
//
// Refused, as by NCCL: ranks and worlds that do not fit, two ranks on one device, memory of another device, a
// communicator that was given up. Never ready, as there: ranks that meet in different collectives, a rank that does not
// come, one that has given up; until the rank that waits gives up its own communicator. Sums are those of a ring: rounded to the dtype at each step, averages
// multiplied by 1/n before.
#include "stand_in.h"

#include <brigade/core/dtype.h>
#include <brigade/core/fnv.h>
#include <brigade/dist/groups/nccl/abi.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

using brigade::dist::nccl::Config;
using brigade::dist::nccl::DataType;
using brigade::dist::nccl::RedOp;
using brigade::dist::nccl::Result;
using brigade::dist::nccl::UniqueId;

namespace {

thread_local std::string last_error;

Result refuse(Result result, std::string why) {
  last_error = std::move(why);
  return result;
}

brigade::DType dtype_of(DataType type) {
  switch (type) {
    case DataType::Int32: return brigade::kInt32;
    case DataType::Int64: return brigade::kInt64;
    case DataType::Float16: return brigade::kFloat16;
    case DataType::Float32: return brigade::kFloat32;
    case DataType::Float64: return brigade::kFloat64;
    case DataType::Bfloat16: return brigade::kBFloat16;
    default: return brigade::kUInt8;
  }
}

struct Call {
  enum Kind { AllReduce, Broadcast, AllGather, ReduceScatter } kind = AllReduce;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;  // of the tensor of one rank; the other has size * count elements
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  int root = 0;

  bool fits(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && root == other.root;
  }
};

using Bytes = std::vector<unsigned char>;

// One that all ranks take part in.
struct Meeting {
  explicit Meeting(size_t ranks) : calls(ranks), sums(ranks, 0), results(ranks) {}
  std::vector<std::optional<Call>> calls;  // of those whose command has come to the front of its stream
  std::vector<uint64_t> sums;              // of what a rank sends, when it arrived
  std::vector<Bytes> results;
  bool computed = false;
  size_t left = 0;
};

// What a rank asks for when the communicator is split.
struct Piece {
  int color = 0;
  int key = 0;
  size_t rank = 0;
  brigade::dist::nccl::Comm* place = nullptr;
};

struct World {
  explicit World(int ranks)
      : size(static_cast<size_t>(ranks)), devices(size, -1), aborted(size, false), next(size, 0), splits(size, 0) {}
  const size_t size;
  std::mutex mutex;
  std::vector<int> devices;  // -1: has not come
  std::vector<bool> aborted;
  std::vector<uint64_t> next;  // per rank: the number of the collective that it comes to next
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  std::vector<uint64_t> splits;  // per rank: how often it has called ncclCommSplit
  std::vector<Piece> pieces;     // of the split that not all have come to
  uint64_t splits_done = 0;
  bool duplicate = false;
  bool given_up = false;  // by any rank
  size_t finalized = 0;

  bool complete() const {
    for (const int device : devices)
      if (device < 0) return false;
    return true;
  }
};

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

std::atomic<size_t> parts_made{0};

std::mutex registrations_mutex;
struct Registration {
  size_t bytes = 0;
  const void* comm = nullptr;
};
std::map<const void*, Registration> registrations;

void forget_registrations(const void* comm) {
  const std::lock_guard lock(registrations_mutex);
  std::erase_if(registrations, [&](const auto& each) { return each.second.comm == comm; });
}

size_t bytes_sent(const Call& call, size_t ranks) {
  const size_t elements = call.kind == Call::ReduceScatter ? ranks * call.count : call.count;
  return elements * brigade::itemsize(dtype_of(call.type));
}

template <class T>
void reduce_into(std::span<const T* const> inputs, RedOp op, size_t begin, size_t count, Bytes& result) {
  using C = brigade::compute_type<T>;
  result.resize(count * sizeof(T));
  T* const out = reinterpret_cast<T*>(result.data());
  for (size_t i = 0; i < count; ++i) {
    const auto value = [&](size_t rank) {
      const C x = static_cast<C>(inputs[rank][begin + i]);
      if constexpr (brigade::is_floating_point(brigade::dtype_of<T>)) {
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

void compute(Meeting& meeting) {
  const size_t ranks = meeting.calls.size();
  const Call& first = *meeting.calls[0];
  const size_t itemsize = brigade::itemsize(dtype_of(first.type));
  for (size_t rank = 0; rank < ranks; ++rank) {
    Bytes& result = meeting.results[rank];
    if (first.kind == Call::Broadcast) {
      const auto* from = static_cast<const unsigned char*>(meeting.calls[static_cast<size_t>(first.root)]->from);
      result.assign(from, from + first.count * itemsize);
    } else if (first.kind == Call::AllGather) {
      for (size_t peer = 0; peer < ranks; ++peer) {
        const auto* from = static_cast<const unsigned char*>(meeting.calls[peer]->from);
        result.insert(result.end(), from, from + first.count * itemsize);
      }
    } else {
      const size_t begin = first.kind == Call::ReduceScatter ? rank * first.count : 0;
      brigade::visit_dtype(dtype_of(first.type), [&]<class T>() {
        std::vector<const T*> inputs;
        for (const auto& call : meeting.calls)
          inputs.push_back(static_cast<const T*>(call->from));
        reduce_into<T>(inputs, first.op, begin, first.count, result);
      });
    }
  }
}

}  // namespace

namespace brigade::dist::nccl {

struct OpaqueComm {
  std::shared_ptr<World> world;
  size_t rank = 0;
  int device = 0;
  bool finalizing = false;
};

}  // namespace brigade::dist::nccl

using brigade::dist::nccl::Comm;

namespace {

// A rank's part. In a graph it runs again with each replay.
struct Part {
  std::shared_ptr<World> world;
  size_t rank = 0;
  Call call;
  std::shared_ptr<Meeting> meeting = nullptr;  // once its command is at the front of its stream
  uint64_t number = 0;
};

// Whether the command at the front of its stream may run. Called under the runtime's lock.
bool is_ready(Part& part) {
  World& world = *part.world;
  const std::lock_guard lock(world.mutex);
  if (world.aborted[part.rank]) return true;
  const Call& own = part.call;
  if (!part.meeting) {
    part.number = world.next[part.rank]++;
    std::shared_ptr<Meeting>& found = world.meetings[part.number];
    if (!found) found = std::make_shared<Meeting>(world.size);
    part.meeting = found;
    part.meeting->calls[part.rank] = own;
    part.meeting->sums[part.rank] = brigade::fnv({static_cast<const char*>(own.from), bytes_sent(own, world.size)});
  }
  const Meeting& meeting = *part.meeting;
  if (meeting.computed) return true;
  for (size_t peer = 0; peer < world.size; ++peer) {
    if (world.aborted[peer] || !meeting.calls[peer] || !meeting.calls[peer]->fits(own)) return false;
  }
  return true;
}

void run(Part& part) {
  World& world = *part.world;
  const std::lock_guard lock(world.mutex);
  if (world.aborted[part.rank]) return;
  const std::shared_ptr<Meeting> kept = std::exchange(part.meeting, nullptr);
  Meeting& meeting = *kept;
  if (!meeting.computed) {
    for (size_t peer = 0; peer < world.size; ++peer) {
      const Call& call = *meeting.calls[peer];
      const bool sends = call.kind != Call::Broadcast || static_cast<size_t>(call.root) == peer;
      if (sends &&
          brigade::fnv({static_cast<const char*>(call.from), bytes_sent(call, world.size)}) != meeting.sums[peer])
        throw simt::Error("stand-in for NCCL: rank " + std::to_string(peer) +
                          " wrote what it sends while the collective was under way");
    }
    compute(meeting);
    meeting.computed = true;
    meeting.left = world.size;
  }
  const Bytes& result = meeting.results[part.rank];
  std::memcpy(part.call.to, result.data(), result.size());
  if (--meeting.left == 0) world.meetings.erase(part.number);
}

Result queue(Comm comm, const Call& call, void* stream) {
  if (!comm) return refuse(Result::InvalidArgument, "comm is NULL");
  World& world = *comm->world;
  if (comm->finalizing) return refuse(Result::InvalidUsage, "the communicator was finalized");
  int device = 0;
  cudaGetDevice(&device);
  if (device != comm->device) return refuse(Result::InvalidUsage, "the current device is not the communicator's");
  for (const void* data : {call.from, static_cast<const void*>(call.to)}) {
    cudaPointerAttributes attributes{};
    cudaPointerGetAttributes(&attributes, data);
    if (call.count > 0 && (attributes.type != cudaMemoryTypeDevice || attributes.device != device))
      return refuse(Result::InvalidArgument, "a buffer is not memory of device " + std::to_string(device));
  }
  if (call.kind == Call::Broadcast && (call.root < 0 || static_cast<size_t>(call.root) >= world.size))
    return refuse(Result::InvalidArgument, "root " + std::to_string(call.root) + " is no rank");
  {
    const std::lock_guard lock(world.mutex);
    if (world.given_up) return refuse(Result::RemoteError, "a rank has given up the communicator");
  }
  const auto part = std::make_shared<Part>(Part{comm->world, comm->rank, call});
  const cudaError_t code = simt::enqueue(
      static_cast<cudaStream_t>(stream), [part] { run(*part); }, [part] { return is_ready(*part); });
  if (code != cudaSuccess) return refuse(Result::UnhandledCudaError, cudaGetErrorString(code));
  return Result::Success;
}

}  // namespace

extern "C" {

Result ncclGetVersion(int* version) {
  *version = 22809;
  return Result::Success;
}

const char* ncclGetErrorString(Result result) {
  switch (result) {
    case Result::Success: return "no error";
    case Result::UnhandledCudaError: return "unhandled cuda error";
    case Result::InvalidArgument: return "invalid argument";
    case Result::InvalidUsage: return "invalid usage";
    case Result::RemoteError: return "remote process exited or there was a network error";
    case Result::InProgress: return "NCCL operation in progress";
    default: return "internal error";
  }
}

const char* ncclGetLastError(Comm) { return last_error.c_str(); }

Result ncclGetUniqueId(UniqueId* id) {
  static std::mutex mutex;
  static uint64_t next = 0;
  const std::lock_guard lock(mutex);
  *id = {};
  std::snprintf(id->internal, sizeof id->internal, "world %llu", static_cast<unsigned long long>(++next));
  return Result::Success;
}

Result ncclCommInitRankConfig(Comm* comm, int ranks, UniqueId id, int rank, Config* config) {
  *comm = nullptr;
  if (config->magic != 0xcafebeef || config->version < 21400 || config->size < sizeof(Config) || config->blocking != 0)
    return refuse(Result::InvalidArgument, "the configuration is not one of 2.14 without blocking");
  if (ranks < 1 || rank < 0 || rank >= ranks) return refuse(Result::InvalidArgument, "rank or world");
  std::shared_ptr<World> world;
  {
    const std::lock_guard lock(worlds_mutex);
    std::shared_ptr<World>& found = worlds[id.internal];
    if (!found) found = std::make_shared<World>(ranks);
    world = found;
  }
  if (world->size != static_cast<size_t>(ranks))
    return refuse(Result::InvalidArgument, "ranks differ in the world's size");
  const std::lock_guard lock(world->mutex);
  int device = 0;
  cudaGetDevice(&device);
  int& place = world->devices[static_cast<size_t>(rank)];
  if (place >= 0) return refuse(Result::InvalidUsage, "rank " + std::to_string(rank) + " came twice");
  for (const int other : world->devices)
    world->duplicate = world->duplicate || (other == device && !std::getenv("NCCL_HOSTID"));
  place = device;
  *comm = new brigade::dist::nccl::OpaqueComm{world, static_cast<size_t>(rank), device};
  return Result::InProgress;
}

Result ncclCommGetAsyncError(Comm comm, Result* error) {
  World& world = *comm->world;
  const std::lock_guard lock(world.mutex);
  *error =
      world.duplicate  ? refuse(Result::InvalidUsage, "Duplicate GPU detected")
      : world.given_up ? refuse(Result::RemoteError, "a rank has given up the communicator")
      : comm->finalizing
          ? (world.finalized == world.size ? Result::Success : Result::InProgress)
          : (world.complete() && world.splits[comm->rank] == world.splits_done ? Result::Success : Result::InProgress);
  return Result::Success;
}

// The new ones are filled in when the last rank has come, as there: until then the old one is in progress.
Result ncclCommSplit(Comm comm, int color, int key, Comm* part, Config*) {
  if (!comm || !part || color < -1) return refuse(Result::InvalidArgument, "the communicator, the place or the color");
  World& world = *comm->world;
  const std::lock_guard lock(world.mutex);
  if (comm->finalizing) return refuse(Result::InvalidUsage, "the communicator was finalized");
  if (world.given_up) return refuse(Result::RemoteError, "a rank has given up the communicator");
  *part = nullptr;
  ++world.splits[comm->rank];
  world.pieces.push_back({color, key, comm->rank, part});
  if (world.pieces.size() < world.size) return Result::InProgress;
  std::map<int, std::map<std::pair<int, size_t>, Piece>> colors;  // by key, then by rank
  for (const Piece& piece : world.pieces)
    if (piece.color >= 0) colors[piece.color][{piece.key, piece.rank}] = piece;
  for (const auto& [number, pieces] : colors) {
    const auto made = std::make_shared<World>(static_cast<int>(pieces.size()));
    size_t rank = 0;
    for (const auto& [order, piece] : pieces) {
      const int device = world.devices[piece.rank];
      made->devices[rank] = device;
      *piece.place = new brigade::dist::nccl::OpaqueComm{made, rank++, device};
      ++parts_made;
    }
  }
  world.pieces.clear();
  ++world.splits_done;
  return Result::InProgress;
}

Result ncclCommFinalize(Comm comm) {
  const std::lock_guard lock(comm->world->mutex);
  if (std::exchange(comm->finalizing, true)) return refuse(Result::InvalidUsage, "finalized twice");
  ++comm->world->finalized;
  return Result::InProgress;
}

Result ncclCommDestroy(Comm comm) {
  forget_registrations(comm);
  delete comm;
  return Result::Success;
}

Result ncclCommAbort(Comm comm) {
  forget_registrations(comm);
  {
    const std::lock_guard lock(comm->world->mutex);
    comm->world->given_up = comm->world->aborted[comm->rank] = true;
  }
  // Those who wait look again.
  int device = 0;
  cudaGetDevice(&device);
  cudaSetDevice(comm->device);
  simt::enqueue(nullptr, [] {});
  cudaSetDevice(device);
  delete comm;
  return Result::Success;
}

// For tests: bytes at `data` that are registered.
size_t nccl_stand_in_registered(const void* data) {
  const std::lock_guard lock(registrations_mutex);
  const auto found = registrations.find(data);
  return found == registrations.end() ? 0 : found->second.bytes;
}

// For tests: communicators that ncclCommSplit has made.
size_t nccl_stand_in_parts() { return parts_made; }

Result ncclMemAlloc(void** data, size_t bytes) {
  return cudaMalloc(data, bytes) == cudaSuccess ? Result::Success : refuse(Result::UnhandledCudaError, "cudaMalloc");
}

Result ncclMemFree(void* data) {
  if (nccl_stand_in_registered(data) > 0) return refuse(Result::InvalidUsage, "memory is freed that is registered");
  return cudaFree(data) == cudaSuccess ? Result::Success : refuse(Result::UnhandledCudaError, "cudaFree");
}

Result ncclCommRegister(Comm comm, void* data, size_t bytes, void** handle) {
  cudaPointerAttributes attributes{};
  cudaPointerGetAttributes(&attributes, data);
  if (attributes.type != cudaMemoryTypeDevice || attributes.device != comm->device || bytes == 0)
    return refuse(Result::InvalidArgument, "what is registered is not memory of the communicator's device");
  const std::lock_guard lock(registrations_mutex);
  if (!registrations.emplace(data, Registration{bytes, comm}).second)
    return refuse(Result::InvalidUsage, "registered twice");
  *handle = data;
  return Result::Success;
}

Result ncclCommDeregister(Comm, void* handle) {
  const std::lock_guard lock(registrations_mutex);
  return registrations.erase(handle) > 0 ? Result::Success
                                         : refuse(Result::InvalidArgument, "this memory is not registered");
}

Result ncclAllReduce(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm, void* stream) {
  return queue(comm, {Call::AllReduce, from, to, count, type, op, 0}, stream);
}

Result ncclBroadcast(const void* from, void* to, size_t count, DataType type, int root, Comm comm, void* stream) {
  return queue(comm, {Call::Broadcast, from, to, count, type, RedOp::Sum, root}, stream);
}

Result ncclAllGather(const void* from, void* to, size_t count, DataType type, Comm comm, void* stream) {
  return queue(comm, {Call::AllGather, from, to, count, type, RedOp::Sum, 0}, stream);
}

Result ncclReduceScatter(const void* from, void* to, size_t count, DataType type, RedOp op, Comm comm, void* stream) {
  return queue(comm, {Call::ReduceScatter, from, to, count, type, op, 0}, stream);
}

}  // extern "C"
