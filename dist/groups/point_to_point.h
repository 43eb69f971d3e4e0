// Messages from one rank to another, alone or several at once (PyTorch: send, recv, isend, irecv,
// batch_isend_irecv).
//
//   // Each rank gives its edge to the next one, and takes that of the one before.
//   const auto works = dist::batch_isend_irecv({{P2POp::Isend, edge, next, group}, {P2POp::Irecv, halo, before, group}});
//   for (const dist::WorkPtr& work : works) work->wait();
//
// Only the two ranks of a message call. Messages with the same sender, receiver and tag arrive in the
// order in which they were sent; others do not wait for each other, so that all ranks may send before
// they receive. The first message with a sender, receiver and tag makes a group of the two ranks, its
// channel, with a thread of its own; the others go through it. So use few tags. Over nccl a channel for tensors of devices
// has a communicator of its own as well (ncclSend, ncclRecv), which has no tags.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <vector>

namespace brigade::dist {

// Return at once. The tensor, contiguous, must not be touched until the Work is complete: for a sender that is when the
// receiver has the values. It is of the CPU, or of a device on an `nccl` group: then the message follows what is queued
// on the current stream, wait() waits on the host until the peer has called too, and what is queued on the current
// stream after it sees the values. Ranks are those of `group`; the tag is from 0 to 65535, 0 for a device.
//
// Throw ValueError for an undefined tensor, a peer that is this rank itself or none of the group, and such a tag;
// ShapeError, DeviceError for another tensor, and in the capture of a graph; DistError on a rank that is no member, and
// where the backend has no channels. wait() throws CollectiveError, on both ranks and with both lines, where number of
// elements or dtype differ, or one tensor is of a device and the other is not: nothing is sent then; TimeoutError that
// names the peer and the tag where it does not come within the group's timeout; PeerError where it dies or leaves. A
// channel is unusable after an error; the group and its other channels go on.
WorkPtr isend(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag = 0,
              SourceLocation where = SourceLocation::current());
WorkPtr irecv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag = 0,
              SourceLocation where = SourceLocation::current());
// The same, and wait.
void send(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag = 0,
          SourceLocation where = SourceLocation::current());
void recv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag = 0,
          SourceLocation where = SourceLocation::current());

// One message of several.
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

// Posts all of them, in any order of sends and receives, and returns a Work for each. Throws ValueError, before anything
// is posted, for no message and for messages of several groups, and what isend and irecv throw.
std::vector<WorkPtr> batch_isend_irecv(const std::vector<P2POp>& messages,
                                       SourceLocation where = SourceLocation::current());

}  // namespace brigade::dist
