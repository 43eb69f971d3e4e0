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
  bool fits(const Call& other) const {
    return kind == other.kind && count == other.count && type == other.type && op == other.op && root == other.root;
  }
};

using Bytes = std::vector<unsigned char>;

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
        splits(size, 0) {}
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
  bool duplicate = false;
  bool given_up = false;  // by any rank
  size_t finalized = 0;

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
// What was queued, a group as one for each communicator and stream.
size_t commands_queued();

}  // namespace brigade::test::nccl

namespace brigade::dist::nccl {

struct OpaqueComm {
  std::shared_ptr<brigade::test::nccl::World> world;
  size_t rank = 0;
  int device = 0;
  bool finalizing = false;
};

}  // namespace brigade::dist::nccl
