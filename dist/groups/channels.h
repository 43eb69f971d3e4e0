// Channels of a rank: two-rank groups, each of which carries the messages of one (sender, receiver, tag).
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/work.h>

#include <map>
#include <memory>
#include <mutex>
#include <tuple>

namespace brigade::dist {

class Channels {
 public:
  // Channels of this rank in `group`, which must outlive them.
  explicit Channels(ProcessGroup& group);
  // Incomplete messages fail with an error. Waits for a channel under construction, at most for the group's timeout.
  ~Channels();
  Channels(const Channels&) = delete;
  Channels& operator=(const Channels&) = delete;

  // Exactly one of `src` and `dst` must be this rank.
  WorkPtr post(const Tensor& tensor, int src, int dst, int tag, SourceLocation where);

 private:
  class Channel;

  ProcessGroup& group_;
  std::mutex mutex_;
  std::map<std::tuple<int, int, int>, std::unique_ptr<Channel>> channels_;  // by sender, receiver, tag
};

// --- Work of a message of a device tensor, which another thread issues once both ranks have called.

// The position of a message in the stream of its caller.
struct DeviceTurn {
  // Records `ready` on the current stream of `device`.
  explicit DeviceTurn(Device device);

  std::unique_ptr<DeviceEvent> ready;  // after the work that was queued before the message
  std::unique_ptr<DeviceEvent> done;   // recorded before `posted` completes, unless that fails
};

// wait() waits for `posted` on the host, then makes the current stream wait for the message.
WorkPtr device_message(WorkPtr posted, std::shared_ptr<DeviceTurn> turn);

}  // namespace brigade::dist
