// Runs ranks with one device each over NCCL: threads of this process, with a thread group as the control group.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/dist/groups/threads/run_threads.h>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

using OnGpu = std::function<void(const dist::ProcessGroupPtr& group, Device device)>;

// Returns false, with a message, if there are fewer devices than ranks.
inline bool has_gpus_for(int ranks) {
  if (device_count(DeviceType::CUDA) >= ranks) return true;
  MESSAGE("left out: ", ranks, " ranks over NCCL need as many GPUs");
  return false;
}

// Returns false if there are fewer devices than ranks.
inline bool on_gpus(int ranks, const OnGpu& body, std::chrono::milliseconds timeout = std::chrono::seconds(30)) {
  if (!has_gpus_for(ranks)) return false;
  dist::run_threads(
      ranks,
      [&](const dist::ProcessGroupPtr& control) {
        const Device device(kCUDA, control->rank());
        set_current_device(device);
        body(dist::make_nccl_group(control), device);
      },
      timeout);
  return true;
}

// The exception message of each rank's body; "" if it throws nothing.
inline std::vector<std::string> errors_of(int ranks, const OnGpu& body,
                                          std::chrono::milliseconds timeout = std::chrono::seconds(5)) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  try {
    on_gpus(
        ranks,
        [&](const dist::ProcessGroupPtr& group, Device device) {
          try {
            body(group, device);
          } catch (const std::exception& error) {
            errors[static_cast<size_t>(group->rank())] = error.what();
            throw;
          }
        },
        timeout);
  } catch (const std::exception&) {
  }
  return errors;
}

}  // namespace brigade::test
