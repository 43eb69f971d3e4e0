// A stand-in for NCCL: the ranks are threads of this process, each with its own emulated device.
//
// A collective is a command in the stream of each rank, or in a graph. It is ready when the command of every rank is at
// the front of its stream; the first one to run then reads all inputs and computes all results, and each command writes
// its own rank's result. So writing a buffer too early or reading it too late gives wrong results, as with NCCL. In
// addition, the stand-in computes a checksum of each rank's input when its command reaches the front, and reports an
// error if the input has changed by the time it is read.
//
// NCCL launches calls on its own thread, and until then the communicator is in progress: at the first collective of a
// kind until all ranks have called theirs, at the first message until both ranks have, and at each call for a few
// polls. Here the caller of ncclCommGetAsyncError does the launch. So an event that is recorded too early comes before
// the collective, and a call on a communicator in progress is rejected. A communicator of one rank launches at once.
//
// The calls of a thread between ncclGroupStart and ncclGroupEnd form one command per communicator and stream: all its
// parts start and end together, so a rank may send to and receive from another rank in one group, in any order.
// Messages (ncclSend, ncclRecv) are matched by sender and receiver in call order, without a buffer: neither ends before
// the other has started.
//
// Rejected, as by NCCL: inconsistent ranks or world sizes, two ranks on one device, memory of another device, an
// aborted communicator; a whole group if one of its calls is rejected. Never ready, as with NCCL: ranks that meet in
// different collectives, or in groups that differ in the number, kind, size, dtype, or position of a part; messages
// whose ends differ in size or dtype; a rank that is missing or has aborted. The waiting rank then has to abort its own
// communicator. Sums are those of a ring: rounded to the dtype at each step, averages multiplied by 1/n first.
#include "nccl_world.h"

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

using brigade::dist::nccl::Comm;
using brigade::dist::nccl::Config;
using brigade::dist::nccl::DataType;
using brigade::dist::nccl::RedOp;
using brigade::dist::nccl::Result;
using brigade::dist::nccl::UniqueId;
using brigade::test::nccl::Call;
using brigade::test::nccl::Piece;
using brigade::test::nccl::queue;
using brigade::test::nccl::refuse;
using brigade::test::nccl::World;

namespace {

std::mutex worlds_mutex;
std::map<std::string, std::shared_ptr<World>> worlds;

std::atomic<size_t> parts_made{0};
std::atomic<size_t> messages{0};

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

const char* ncclGetLastError(Comm) { return brigade::test::nccl::latest_refusal().c_str(); }

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
  {
    const std::lock_guard lock(world.mutex);
    *error = world.duplicate  ? refuse(Result::InvalidUsage, "Duplicate GPU detected")
             : world.given_up ? refuse(Result::RemoteError, "a rank has given up the communicator")
             : comm->finalizing
                 ? (world.finalized == world.size ? Result::Success : Result::InProgress)
                 : (world.complete() && world.splits[comm->rank] == world.splits_done ? Result::Success
                                                                                      : Result::InProgress);
  }
  if (*error == Result::Success) *error = brigade::test::nccl::launch_when_connected(comm);
  return Result::Success;
}

// The new communicators are filled in once the last rank has called, as in NCCL; until then the parent is in progress.
Result ncclCommSplit(Comm comm, int color, int key, Comm* part, Config*) {
  if (!comm || !part || color < -1) return refuse(Result::InvalidArgument, "the communicator, the place or the color");
  if (const Result settled = brigade::test::nccl::require_settled(comm); settled != Result::Success) return settled;
  World& world = *comm->world;
  const std::lock_guard lock(world.mutex);
  if (comm->finalizing) return refuse(Result::InvalidUsage, "the communicator was finalized");
  if (world.given_up) return refuse(Result::RemoteError, "a rank has given up the communicator");
  *part = nullptr;
  ++world.splits[comm->rank];
  world.pieces.push_back({color, key, comm->rank, part});
  if (world.pieces.size() < world.size) return Result::InProgress;
  std::map<int, std::map<std::pair<int, size_t>, Piece>> colors;  // keyed by key, then by rank
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
  if (const Result settled = brigade::test::nccl::require_settled(comm); settled != Result::Success) return settled;
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
  // Makes waiting host threads check again.
  int device = 0;
  cudaGetDevice(&device);
  cudaSetDevice(comm->device);
  simt::enqueue(nullptr, [] {});
  cudaSetDevice(device);
  delete comm;
  return Result::Success;
}

// For tests: the number of registered bytes at `data`.
size_t nccl_stand_in_registered(const void* data) {
  const std::lock_guard lock(registrations_mutex);
  const auto found = registrations.find(data);
  return found == registrations.end() ? 0 : found->second.bytes;
}

// For tests: the number of queued commands; a group counts once per communicator and stream.
size_t nccl_stand_in_commands() { return brigade::test::nccl::commands_queued(); }

// For tests: sets how often a connected communicator reports being in progress after each call; returns the old number.
int nccl_stand_in_answer_in_progress(int times) { return brigade::test::nccl::answer_in_progress(times); }

// For tests: the number of ncclSend and ncclRecv calls.
size_t nccl_stand_in_messages() { return messages; }

// For tests: the number of communicators made by ncclCommSplit.
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

Result ncclSend(const void* from, size_t count, DataType type, int peer, Comm comm, void* stream) {
  ++messages;
  return queue(comm, {Call::Send, from, nullptr, count, type, RedOp::Sum, peer}, stream);
}

Result ncclRecv(void* to, size_t count, DataType type, int peer, Comm comm, void* stream) {
  ++messages;
  return queue(comm, {Call::Recv, nullptr, to, count, type, RedOp::Sum, peer}, stream);
}

Result ncclGroupStart() { return brigade::test::nccl::begin_group(); }

Result ncclGroupEnd() { return brigade::test::nccl::end_group(); }

}  // extern "C"
