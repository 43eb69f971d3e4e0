// A message is a broadcast in a group of two ranks, which is made when the first message is posted. So messages behave
// like collectives: both sides compare what they have posted, and timeouts and dead ranks are detected. Each channel
// has a thread that connects to the peer and waits for the messages in order; no channel waits for another.
//
// A message of a device tensor takes two steps on that thread. First the ranks compare it in the two-rank group, before
// anything is issued: a device that received another size than expected would hang, or write past the end. Then a
// second group, on the devices, sends it (ProcessGroup::make_device_channel) on the channel's own stream, between an
// event of the caller's stream and an event that wait() makes the caller's stream wait for. So each direction has its
// own communicator, and no order between channels, or between messages and collectives, can deadlock two devices.
#include <brigade/dist/groups/channels.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/error.h>
#include <brigade/core/factory.h>
#include <brigade/dist/groups/subgroup.h>
#include <brigade/dist/groups/work_queue.h>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <map>
#include <utility>

namespace brigade::dist {
namespace {

// Distinguishes channels from each other and from the groups of new_group, which are numbered by collective sequence.
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
    const Device device = tensor.device();
    const bool on_device = device.type != DeviceType::CPU;
    CollectiveInfo message;
    message.kind = CollectiveKind::Message;
    message.dtype = tensor.dtype();
    message.count = tensor.numel();
    message.root = root_name_;
    message.text = fmt::format("tag {}{}", tag_, on_device ? ", on a device" : "");
    message.where = where;
    message.sequence = ++posted_;
    const std::string words =
        fmt::format("a message {} rank {}, tag {}", sends_ ? "to" : "from", parent_.names()(peer_), tag_);
    if (!on_device)
      return queue_.post(words, [this, tensor, message, where](WorkTimes&) { run(tensor, message, where); });
    const DeviceRuntime& runtime = device_runtime(device);
    if (runtime.is_capturing(device.index))
      throw DeviceError(
          where,
          "{}: a message cannot be captured into a graph, since it is issued when both ranks have called; "
          "send it between replays",
          words);
    const auto turn = std::make_shared<DeviceTurn>(device);
    return device_message(queue_.post(words, [this, tensor, message, where,
                                              turn](WorkTimes&) { run(tensor, message, where, turn.get()); }),
                          turn);
  }

 private:
  // Runs on the queue's thread.
  void run(const Tensor& tensor, const CollectiveInfo& message, SourceLocation where,
           const DeviceTurn* turn = nullptr) {
    if (failure_) std::rethrow_exception(failure_);
    try {
      const ProcessGroupPtr group = met(where);
      CollectiveOptions options{.root = root_};
      options.step_of = &message;
      if (turn) {
        send_on_device(group, tensor, options, where, *turn);
      } else {
        group->broadcast(tensor, options, where)->wait();
      }
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
  }

  void send_on_device(const ProcessGroupPtr& group, const Tensor& tensor, const CollectiveOptions& options,
                      SourceLocation where, const DeviceTurn& turn) {
    const Tensor token = empty({1}, kInt32);
    *token.data_ptr<int32_t>() = 0;
    group->all_reduce(token, options, where)->wait();
    const Device device = tensor.device();
    set_current_device(device);
    if (!device_group_) device_group_ = parent_.make_device_channel(group);
    std::unique_ptr<DeviceStream>& stream = streams_[device];
    if (!stream) stream = device_runtime(device).new_stream(device.index);
    const DeviceStreamGuard guard(*stream);
    turn.ready->block();
    device_group_->broadcast(tensor, options, where)->wait();
    turn.done->record();
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
  std::exception_ptr failure_;  // used only on the queue's thread, like the next two
  std::map<Device, std::unique_ptr<DeviceStream>> streams_;
  ProcessGroupPtr device_group_;  // made at the first message of a device
  std::mutex mutex_;              // guards the next two
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

// --- Waits first for the host, then for the device.

namespace {

class DeviceMessage final : public Work {
 public:
  DeviceMessage(WorkPtr posted, std::shared_ptr<DeviceTurn> turn)
      : posted_(std::move(posted)), turn_(std::move(turn)) {}

  bool is_completed() override {
    if (!posted_->is_completed()) return false;
    try {
      posted_->wait();
    } catch (const std::exception&) {
      return true;  // failed
    }
    return turn_->done->query();
  }
  void wait() override {
    posted_->wait();
    turn_->done->block();
  }
  void wait(std::chrono::milliseconds timeout) override {
    posted_->wait(timeout);
    turn_->done->block();
  }

 private:
  const WorkPtr posted_;
  const std::shared_ptr<DeviceTurn> turn_;
};

}  // namespace

DeviceTurn::DeviceTurn(Device device)
    : ready(device_runtime(device).new_event(device.index)), done(device_runtime(device).new_event(device.index)) {
  ready->record();
}

WorkPtr device_message(WorkPtr posted, std::shared_ptr<DeviceTurn> turn) {
  return std::make_shared<DeviceMessage>(std::move(posted), std::move(turn));
}

}  // namespace brigade::dist
