// A device that is behind its host.
#pragma once

#include <brigade/core/cuda/stream.h>
#include <brigade/core/device.h>

#include <doctest/doctest.h>

#include <chrono>
#include <thread>

#ifndef BRIGADE_REAL_CUDA
#include <simt/runtime.h>
#endif

namespace brigade::test {

// Keeps the current stream for a while, longer than the group waits.
inline constexpr auto kHeld = std::chrono::milliseconds(1500);
inline std::jthread hold_stream(Device device) {
  const cudaStream_t stream = cuda::current_stream(device.index).get();
#ifdef BRIGADE_REAL_CUDA
  REQUIRE(cudaLaunchHostFunc(
              stream, [](void*) { std::this_thread::sleep_for(kHeld); }, nullptr) == cudaSuccess);
  return {};
#else
  // Not by a sleep: whoever drains the streams would sleep.
  const auto until = std::chrono::steady_clock::now() + kHeld;
  const auto is_ready = [until] { return std::chrono::steady_clock::now() >= until; };
  REQUIRE(simt::enqueue(
              stream, [] {}, is_ready) == cudaSuccess);
  return std::jthread([until, device] {
    std::this_thread::sleep_until(until);
    cudaSetDevice(device.index);
    simt::enqueue(nullptr, [] {});  // who waits looks again
  });
#endif
}

}  // namespace brigade::test
