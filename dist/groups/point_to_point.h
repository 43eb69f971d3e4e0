// Point-to-point messages, one by one or in a batch (PyTorch: send, recv, isend, irecv, batch_isend_irecv).
//
//   // Each rank sends its edge to the next rank, and receives the edge of the previous rank.
//   const auto works = dist::batch_isend_irecv({{P2POp::Isend, edge, next, group}, {P2POp::Irecv, halo, before, group}});
//   for (const dist::WorkPtr& work : works) work->wait();
//
// Only the two ranks of a message call. Messages with the same sender, receiver and tag arrive in the order in which
// they were sent; other messages do not wait for each other, so all ranks may send before they receive. The first
// message with a given sender, receiver and tag makes a group of the two ranks, its channel, with its own thread; later
// messages use the same channel. So use few tags. Over nccl, a channel for device tensors also has its own communicator
// (ncclSend, ncclRecv), which has no tags.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <vector>

namespace brigade::dist {

// Return at once. The tensor must be contiguous, and must not be touched until the Work is complete: for a sender, that
// is when the receiver has the values. The tensor is on the CPU, or on a device with an `nccl` group: then the message
// runs after the work queued on the current stream, wait() blocks the host until the peer has called too, and work
// queued on the current stream afterwards sees the values. Ranks are those of `group`; the tag is from 0 to 65535, and
// 0 for a device.
//
// Throw ValueError for an undefined tensor, a peer that is this rank itself or not a rank of the group, and a tag out
// of range; ShapeError for a tensor that is not contiguous; DeviceError for a tensor of an unsupported device, and
// during graph capture; DistError on a rank that is not a member, and when the backend has no channels. wait() throws
// CollectiveError, on both ranks and with both lines, when the number of elements or dtypes differ, or when only one of
// the tensors is on a device (nothing is sent then); TimeoutError that names the peer and the tag when the peer does
// not call within the group's timeout; PeerError when the peer dies or leaves. A channel is unusable after an error;
// the group and its other channels stay usable.
WorkPtr isend(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag = 0,
              SourceLocation where = SourceLocation::current());
WorkPtr irecv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag = 0,
              SourceLocation where = SourceLocation::current());
// Blocking versions of isend and irecv.
void send(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag = 0,
          SourceLocation where = SourceLocation::current());
void recv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag = 0,
          SourceLocation where = SourceLocation::current());

// One message of a batch.
struct P2POp {
  enum Kind : uint8_t { Isend, Irecv };

  P2POp(Kind kind, Tensor tensor, int peer, ProcessGroupPtr group, int tag = 0,
        SourceLocation where = SourceLocation::current())
      : kind(kind), tensor(std::move(tensor)), peer(peer), group(std::move(group)), tag(tag), where(where) {}

  Kind kind;
  Tensor tensor;
  int peer;
  ProcessGroupPtr group;
  int tag;
  SourceLocation where;
};

// Posts all messages, in any order of sends and receives, and returns a Work for each. Before anything is posted,
// throws ValueError for an empty list and for messages of several groups, and the errors of isend and irecv.
std::vector<WorkPtr> batch_isend_irecv(const std::vector<P2POp>& messages,
                                       SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
