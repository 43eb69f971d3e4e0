// Work of a message of a device tensor, which another thread issues once both ranks have called.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/work.h>

#include <memory>

namespace brigade::dist {

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
