// Checks messages before a channel gets them.
#include <brigade/dist/groups/point_to_point.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/channels.h>

namespace brigade::dist {
namespace {

constexpr int kLastTag = 65535;

void check(const P2POp& message) {
  const char* const what = message.kind == P2POp::Isend ? "isend" : "irecv";
  const SourceLocation where = message.where;
  if (!message.group) throw ValueError(where, "{}: the process group is empty; see init_process_group", what);
  const ProcessGroup& group = *message.group;
  if (group.rank() < 0)
    throw DistError(where, "{}: this rank is no member of the group; call it on members only", what);
  if (!message.tensor.defined()) throw ValueError(where, "{}: the tensor is undefined", what);
  if (!message.tensor.is_contiguous())
    throw ShapeError(where, "{}: expected a contiguous tensor, got {} with strides {}; use contiguous()", what,
                     describe(message.tensor), message.tensor.strides());
  const bool on_device = message.tensor.device().type != DeviceType::CPU;
  if (!group.sends(message.tensor.device()))
    throw DeviceError(where,
                      "{}: expected a tensor of the CPU, got {}; messages of the backend {} go through the host's "
                      "memory, those of nccl from device to device",
                      what, describe(message.tensor), group.backend());
  if (message.peer < 0 || message.peer >= group.size())
    throw ValueError(where, "{}: rank {} is not a rank of the group, 0 to {}", what, message.peer, group.size() - 1);
  if (message.peer == group.rank())
    throw ValueError(where, "{}: rank {} is this rank itself; a message has two ranks, copy the tensor", what,
                     message.peer);
  if (message.tag < 0 || message.tag > kLastTag)
    throw ValueError(where, "{}: expected a tag from 0 to {}, got {}", what, kLastTag, message.tag);
  if (on_device && message.tag != 0)
    throw ValueError(where,
                     "{}: NCCL has no tags: expected tag 0 for {}, got {}; messages of two ranks arrive in the order "
                     "of their sending, and tensors of the CPU may have tags",
                     what, describe(message.tensor), message.tag);
}

WorkPtr post(const P2POp& message) {
  const int own = message.group->rank();
  const bool sends = message.kind == P2POp::Isend;
  return message.group->channels().post(message.tensor, sends ? own : message.peer, sends ? message.peer : own,
                                        message.tag, message.where);
}

WorkPtr checked(const P2POp& message) {
  check(message);
  return post(message);
}

}  // namespace

WorkPtr isend(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag, SourceLocation where) {
  return checked({P2POp::Isend, tensor, dst, group, tag, where});
}

WorkPtr irecv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag, SourceLocation where) {
  return checked({P2POp::Irecv, tensor, src, group, tag, where});
}

void send(const ProcessGroupPtr& group, const Tensor& tensor, int dst, int tag, SourceLocation where) {
  isend(group, tensor, dst, tag, where)->wait();
}

void recv(const ProcessGroupPtr& group, const Tensor& tensor, int src, int tag, SourceLocation where) {
  irecv(group, tensor, src, tag, where)->wait();
}

std::vector<WorkPtr> batch_isend_irecv(const std::vector<P2POp>& messages, SourceLocation where) {
  if (messages.empty()) throw ValueError(where, "batch_isend_irecv: expected at least one message, got none");
  for (const P2POp& message : messages) {
    check(message);
    if (message.group != messages.front().group)
      throw ValueError(message.where, "batch_isend_irecv: expected messages of one group, got those of several");
  }
  std::vector<WorkPtr> works;
  for (const P2POp& message : messages)
    works.push_back(post(message));
  return works;
}

}  // namespace brigade::dist
