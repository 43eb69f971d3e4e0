// The work of a message of a device's tensor, which another thread issues when both ranks have called.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/work.h>

#include <memory>

namespace brigade::dist {

// Where it has its place in the streams of its caller.
struct DeviceTurn {
  // Now, on the current stream of `device`.
  explicit DeviceTurn(Device device);

  std::unique_ptr<DeviceEvent> ready;  // what was queued before it
  std::unique_ptr<DeviceEvent> done;   // recorded before `posted` is complete, unless that has an error
};

// wait() waits for `posted` on the host, and lets the current stream wait for the message.
WorkPtr device_message(WorkPtr posted, std::shared_ptr<DeviceTurn> turn);

}  // namespace brigade::dist
