// A message is a broadcast in a group of two ranks, made when the first one is posted. So whatever holds of a collective
// holds of it: comparison of what both have posted, time-outs, ranks that die. A thread for each channel meets the peer
// and waits, in the order of the messages; no channel waits for another.
#include <brigade/dist/groups/channels.h>

#include <brigade/core/error.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/groups/work_queue.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace brigade::dist {

namespace {

constexpr const char* kMessageKind = "message";  // as a collective that ranks compare

// Tells channels from each other and from the groups of new_group, whose numbers are those of collectives.
uint64_t number_of(int src, int dst, int tag) {
  return uint64_t{1} << 63 | static_cast<uint64_t>(src) << 40 | static_cast<uint64_t>(dst) << 16 |
         static_cast<uint64_t>(tag);
}

}  // namespace

class Channels::Channel {
 public:
  Channel(ProcessGroup& parent, int src, int dst, int tag)
      : parent_(parent),
        sends_(parent.rank() == src),
        peer_(sends_ ? dst : src),
        root_(src < dst ? 0 : 1),
        tag_(tag),
        root_name_(parent.names()(src).number),
        queue_(parent.timeout()) {
    members_.ranks = {std::min(src, dst), std::max(src, dst)};
    members_.rank = parent.rank() == members_.ranks.front() ? 0 : 1;
    members_.timeout = parent.timeout();
    members_.names = parent.names().step(members_.ranks);
    members_.number = number_of(src, dst, tag);
  }
  ~Channel() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    if (group_ && !queue_.idle()) group_->abort("the group of its channel was destroyed");
  }

  WorkPtr post(const Tensor& tensor, SourceLocation where) {
    CollectiveInfo message;
    message.kind = kMessageKind;
    message.dtype = name(tensor.dtype());
    message.count = tensor.numel();
    message.root = root_name_;
    message.description = fmt::format("tag {}", tag_);
    message.where = where;
    message.sequence = ++posted_;
    return queue_.post(
        fmt::format("a message {} rank {}, tag {}", sends_ ? "to" : "from", parent_.names()(peer_), tag_),
        [this, tensor, message, where](WorkTimes&) { run(tensor, message, where); });
  }

 private:
  // On the thread of the queue.
  void run(const Tensor& tensor, const CollectiveInfo& message, SourceLocation where) {
    if (failure_) std::rethrow_exception(failure_);
    try {
      const ProcessGroupPtr group = met(where);
      CollectiveOptions options{.root = root_};
      options.step_of = &message;
      group->broadcast(tensor, options, where)->wait();
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }

  ProcessGroupPtr met(SourceLocation where) {
    {
      const std::lock_guard lock(mutex_);
      if (group_) return group_;
      if (ended_) throw DistError("the group was destroyed before this message was sent", where);
    }
    ProcessGroupPtr made;
    try {
      made = parent_.make_channel(members_);
    } catch (const TimeoutError&) {
      throw TimeoutError(where, "{} rank {}, tag {}: rank {} has called no {} with rank {} and that tag within {} ms",
                         sends_ ? "isend to" : "irecv from", parent_.names()(peer_), tag_, parent_.names()(peer_),
                         sends_ ? "recv" : "send", parent_.names()(parent_.rank()), members_.timeout.count());
    }
    const std::lock_guard lock(mutex_);
    group_ = std::move(made);
    return group_;
  }

  ProcessGroup& parent_;
  const bool sends_;
  const int peer_, root_, tag_, root_name_;
  Subgroup members_;
  uint64_t posted_ = 0;
  std::exception_ptr failure_;  // of the thread
  std::mutex mutex_;            // of what follows
  ProcessGroupPtr group_;
  bool ended_ = false;
  WorkQueue queue_;  // last: its thread uses the rest
};

Channels::Channels(ProcessGroup& group) : group_(group) {}

Channels::~Channels() = default;

WorkPtr Channels::post(const Tensor& tensor, int src, int dst, int tag, SourceLocation where) {
  const std::lock_guard lock(mutex_);
  std::unique_ptr<Channel>& channel = channels_[{src, dst, tag}];
  if (!channel) channel = std::make_unique<Channel>(group_, src, dst, tag);
  return channel->post(tensor, where);
}

}  // namespace brigade::dist
