// The world of the stand-in for NCCL: the ranks of a communicator, what they have called, and what is queued for it.
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
  size_t count = 0;  // of the tensor of one rank; the other has size * count elements
  DataType type = DataType::Float32;
  RedOp op = RedOp::Sum;
  int root = 0;  // of a message the peer

  bool is_message() const { return kind == Send || kind == Recv; }
  // Of a message of this rank.
  size_t sender(size_t rank) const { return kind == Send ? rank : static_cast<size_t>(root); }
  size_t receiver(size_t rank) const { return kind == Send ? static_cast<size_t>(root) : rank; }
  bool fits(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && root == other.root;
  }
};

inline constexpr size_t kCollectives = Call::Send;  // kinds of them, which stand first

using Bytes = std::vector<unsigned char>;

// Called, and not yet in its stream: what a rank calls NCCL launches on a thread of its own.
struct Launch {
  std::vector<Call> calls;
  void* stream = nullptr;
};

// One that all ranks take part in: a collective, or the collectives of a group.
struct Meeting {
  explicit Meeting(size_t ranks) : calls(ranks), sums(ranks), results(ranks) {}
  std::vector<std::vector<Call>> calls;     // of those whose command has come to the front of its stream, else none
  std::vector<std::vector<uint64_t>> sums;  // of what a rank sends in each, when it arrived
  std::vector<std::vector<Bytes>> results;
  bool computed = false;
  size_t left = 0;
};

// From one rank to another.
struct Message {
  std::optional<Call> send, receive;  // once the command is at the front of its stream
  uint64_t sum = 0;                   // of what is sent, when it arrived
  std::optional<Bytes> taken;         // by the first of both that runs
  size_t left = 2;

  bool fits() const { return send && receive && send->count == receive->count && send->type == receive->type; }
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
  std::vector<int> devices;  // -1: has not come
  std::vector<bool> aborted;
  std::vector<uint64_t> next;  // per rank: the number of the collective that it comes to next
  std::map<uint64_t, std::shared_ptr<Meeting>> meetings;
  std::vector<uint64_t> next_message;  // the same of messages: per direction, sender and receiver
  std::map<std::pair<size_t, uint64_t>, std::shared_ptr<Message>> messages;  // by sender and receiver, and number
  std::vector<uint64_t> splits;  // per rank: how often it has called ncclCommSplit
  std::vector<Piece> pieces;     // of the split that not all have come to
  uint64_t splits_done = 0;
  // Which ranks have made the first call that connects them: for collectives all ranks, once per kind, since each kind
  // may use another algorithm; for messages the two ranks involved.
  std::vector<bool> called;          // by kind and rank
  std::vector<bool> sent, received;  // by sender and receiver
  bool duplicate = false;
  bool given_up = false;  // by any rank
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

// Keeps the reason for ncclGetLastError.
Result refuse(Result result, std::string why);
const std::string& latest_refusal();

// Of the calling thread: what it calls in between is queued by the second.
Result begin_group();
Result end_group();
Result queue(Comm comm, const Call& call, void* stream);
// Launches what was called on it once the ranks have connected: asked for by whoever asks how the communicator is.
Result launch_when_connected(Comm comm);
// Refuses to call anything while it is in progress.
Result require_settled(Comm comm);
// What was queued, a group as one for each communicator and stream.
size_t commands_queued();
// How often a connected one answers that it is in progress before it has launched what was called; gives the number
// before.
int answer_in_progress(int times);

}  // namespace brigade::test::nccl

namespace brigade::dist::nccl {

struct OpaqueComm {
  std::shared_ptr<brigade::test::nccl::World> world;
  size_t rank = 0;
  int device = 0;
  bool finalizing = false;
  std::vector<brigade::test::nccl::Launch> launches = {};  // under the world's mutex, as what follows
  int answers_left = 0;
};

}  // namespace brigade::dist::nccl
