// Simulates a device that falls behind its host.
#pragma once

#include <brigade/core/cuda/stream.h>
#include <brigade/core/device.h>
#include <brigade/core/device_runtime.h>
#include <brigade/dist/groups/process_group.h>
#include <brigade/kernels/factory.h>

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#ifndef BRIGADE_REAL_CUDA
#include <simt/runtime.h>
#endif

namespace brigade::test {

// Longer than the time-out of the group.
inline constexpr auto kHeld = std::chrono::milliseconds(1500);

// Blocks the current stream until the returned thread is stopped, for at most `longest`.
inline std::jthread hold_stream(Device device, std::chrono::milliseconds longest = kHeld) {
  const cudaStream_t stream = cuda::current_stream(device.index).get();
  const auto released = std::make_shared<std::atomic<bool>>(false);
#ifdef BRIGADE_REAL_CUDA
  using Flag = std::shared_ptr<std::atomic<bool>>;
  const auto wait = [](void* flag) {
    const std::unique_ptr<Flag> held(static_cast<Flag*>(flag));
    while (!held->get()->load())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  REQUIRE(cudaLaunchHostFunc(stream, wait, new Flag(released)) == cudaSuccess);
#else
  // Not a sleep: it would block the host thread that drains the streams.
  REQUIRE(simt::enqueue(
              stream, [] {}, [released] { return released->load(); }) == cudaSuccess);
#endif
  return std::jthread([released, device, until = std::chrono::steady_clock::now() + longest](std::stop_token stop) {
    std::mutex mutex;
    std::unique_lock lock(mutex);
    std::condition_variable_any().wait_until(lock, stop, until, [] { return false; });
    released->store(true);
#ifndef BRIGADE_REAL_CUDA
    cudaSetDevice(device.index);
    simt::enqueue(nullptr, [] {});  // makes waiting threads check again
#else
    (void)device;
#endif
  });
}

// Rebuilt buckets leave memory behind that later collectives free, and freeing waits for the device. Call this before a
// stream is held, so that no host waits for it.
inline void free_old_buckets(const dist::ProcessGroupPtr& group, Device device) {
  const auto latest = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  for (int i = 0; i < 3; ++i) {  // released, set aside, freed
    const Tensor x = zeros({1}).to(device);
    group->all_reduce(x)->wait();
    device_runtime(device).synchronize(device.index);
    // Once the watcher thread has released this collective, it has released all earlier ones.
    while (x.use_count() > 1) {
      REQUIRE(std::chrono::steady_clock::now() < latest);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
}

}  // namespace brigade::test
