// The world of the NCCL stand-in: the ranks of a communicator, their calls, and the queued commands.
#pragma once

#include "stand_in.h"

#include <brigade/core/dtype.h>
#include <brigade/dist/groups/nccl/abi.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace brigade::test::nccl {

using dist::nccl::Comm;
using dist::nccl::DataType;
using dist::nccl::RedOp;
using dist::nccl::Result;

struct Call {
  enum Kind { AllReduce, Broadcast, AllGather, ReduceScatter, Send, Recv } kind = AllReduce;
  const void* from = nullptr;
  void* to = nullptr;
  size_t count = 0;  // elements of one rank's tensor; the larger tensor has size * count
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  int root = 0;  // for a message: the peer

  bool is_message() const { return kind == Send || kind == Recv; }
  // For a message call of rank `rank`.
  size_t sender(size_t rank) const { return kind == Send ? rank : static_cast<size_t>(root); }
  size_t receiver(size_t rank) const { return kind == Send ? static_cast<size_t>(root) : rank; }
  bool fits(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && root == other.root;
  }
};

inline constexpr size_t kCollectives = Call::Send;  // number of collective kinds, which come first

using Bytes = std::vector<unsigned char>;

// Calls that are not in the stream yet: NCCL launches the calls of a rank on its own thread.
struct Launch {
  std::vector<Call> calls;
  void* stream = nullptr;
};

// A meeting of all ranks: a collective, or the collectives of a group.
struct Meeting {
  explicit Meeting(size_t ranks) : calls(ranks), sums(ranks), results(ranks) {}
  std::vector<std::vector<Call>> calls;     // per rank; empty until its command reaches the front of its stream
  std::vector<std::vector<uint64_t>> sums;  // checksum of each rank's input on arrival
  std::vector<std::vector<Bytes>> results;
  bool computed = false;
  size_t left = 0;
};

// A message from one rank to another.
struct Message {
  std::optional<Call> send, receive;  // set when the command reaches the front of its stream
  uint64_t sum = 0;                   // checksum of the sent data on arrival
  std::optional<Bytes> taken;         // copied by whichever command runs first
  size_t left = 2;

  bool fits() const { return send && receive && send->count == receive->count && send->type == receive->type; }
};

// The request of a rank in a split of the communicator.
struct Piece {
  int color = 0;
  int key = 0;
  size_t rank = 0;
  brigade::dist::nccl::Comm* place = nullptr;
};

struct World {
  explicit World(int ranks)
      : size(static_cast<size_t>(ranks)),
        devices(size, -1),
        aborted(size, false),
        next(size, 0),
        next_message(2 * size * size, 0),
        splits(size, 0),
        called(kCollectives * size, false),
        sent(size * size, false),
        received(size * size, false) {}
  const size_t size;
  std::mutex mutex;
  std::vector<int> devices;  // -1: has not joined
  std::vector<bool> aborted;
  std::vector<uint64_t> next;  // per rank: the number of its next collective
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  std::vector<uint64_t> next_message;  // the same for messages: per direction, sender, and receiver
  std::map<std::pair<size_t, uint64_t>, std::shared_ptr<Message>> messages;  // by sender and receiver, and number
  std::vector<uint64_t> splits;  // per rank: the number of its ncclCommSplit calls
  std::vector<Piece> pieces;     // of the split in progress
  uint64_t splits_done = 0;
  // The ranks that have made the first call that connects them: for collectives all ranks, once per kind, since each
  // kind may use another algorithm; for messages the two ranks involved.
  std::vector<bool> called;          // by kind and rank
  std::vector<bool> sent, received;  // by sender and receiver
  bool duplicate = false;
  bool given_up = false;  // by at least one rank
  size_t finalized = 0;

  void come(size_t rank, const Call& call) {
    if (!call.is_message()) {
      called[call.kind * size + rank] = true;
    } else {
      (call.kind == Call::Send ? sent : received)[call.sender(rank) * size + call.receiver(rank)] = true;
    }
  }
  bool is_connected(size_t rank, const Call& call) const {
    if (!call.is_message()) {
      for (size_t peer = 0; peer < size; ++peer)
        if (!called[call.kind * size + peer]) return false;
      return true;
    }
    const size_t way = call.sender(rank) * size + call.receiver(rank);
    return sent[way] && received[way];
  }
  bool complete() const {
    for (const int device : devices)
      if (device < 0) return false;
    return true;
  }
};

// Stores the reason for ncclGetLastError.
Result refuse(Result result, std::string why);
const std::string& latest_refusal();

// For the calling thread: calls between these two are queued by end_group().
Result begin_group();
Result end_group();
Result queue(Comm comm, const Call& call, void* stream);
// Launches pending calls once the ranks have connected. Called when a rank polls the state of the communicator.
Result launch_when_connected(Comm comm);
// Rejects calls while the communicator is in progress.
Result require_settled(Comm comm);
// The number of queued commands; a group counts once per communicator and stream.
size_t commands_queued();
// Sets how often a connected communicator reports being in progress before it launches its calls; returns the old
// number.
int answer_in_progress(int times);

}  // namespace brigade::test::nccl

namespace brigade::dist::nccl {

struct OpaqueComm {
  std::shared_ptr<brigade::test::nccl::World> world;
  size_t rank = 0;
  int device = 0;
  bool finalizing = false;
  std::vector<brigade::test::nccl::Launch> launches = {};  // this and the members below: guarded by the world's mutex
  int answers_left = 0;
};

}  // namespace brigade::dist::nccl
