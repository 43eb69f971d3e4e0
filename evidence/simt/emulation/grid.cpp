// Kernel launches: the configuration is checked at once; the blocks run, on one or several OS threads, with the stream.
#include <simt/error.h>
#include <simt/launch.h>
#include <simt/options.h>

#include "../runtime/functions.h"
#include "../runtime/scheduler.h"
#include "block.h"
#include "coverage.h"
#include "shared_memory.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace simt::detail {
namespace {

std::string text(dim3 v) {
  return "(" + std::to_string(v.x) + "," + std::to_string(v.y) + "," + std::to_string(v.z) + ")";
}

// What is wrong with the configuration, or "".
std::string configuration_error(const Launch& launch) {
  const dim3 grid = launch.grid;
  const dim3 block = launch.block;
  if (block.x == 0 || block.y == 0 || block.z == 0) return "block " + text(block) + " has no threads";
  if (block.x > 1024 || block.y > 1024 || block.z > 64 || uint64_t{block.x} * block.y * block.z > kMaximalThreads)
    return "block " + text(block) + " exceeds 1024 threads or (1024,1024,64)";
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return "grid " + text(grid) + " has no blocks";
  if (grid.x > 0x7fffffffU || grid.y > 65535 || grid.z > 65535)
    return "grid " + text(grid) + " exceeds (2147483647,65535,65535)";
  if (launch.shared_bytes > SharedMemory::kMaximalBytes)
    return std::to_string(launch.shared_bytes) + " bytes of dynamic shared memory; a block has at most 227 KiB";
  if (launch.shared_bytes > SharedMemory::kDefaultBytes && launch.shared_bytes > dynamic_shared_limit(launch.kernel))
    return std::to_string(launch.shared_bytes) +
           " bytes of dynamic shared memory; above 48 KiB call cudaFuncSetAttribute(kernel, "
           "cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) first";
  return "";
}

// The blocks of a grid, taken one at a time by the next free worker.
class Grid {
 public:
  explicit Grid(const Launch& launch)
      : launch_(launch), blocks_(uint64_t{launch.grid.x} * launch.grid.y * launch.grid.z) {}

  void run() {
    note_run(launch_.kernel);
    std::vector<std::thread> helpers;
    for (int i = 1; i < options().workers && static_cast<uint64_t>(i) < blocks_; ++i)
      helpers.emplace_back([this] { work(); });
    work();
    for (std::thread& helper : helpers)
      helper.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void work() {
    // Its stacks are reused by all launches on this OS thread.
    static thread_local BlockRunner runner;
    runner.begin_launch(launch_);
    for (uint64_t i = next_++; i < blocks_ && !failed_; i = next_++) {
      try {
        runner.run_block(index(options().order == Order::Reverse ? blocks_ - 1 - i : i));
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failed_.exchange(true)) failure_ = std::current_exception();
      }
    }
    runner.end_launch();
  }

  uint3 index(uint64_t block) const {
    const dim3 grid = launch_.grid;
    return {static_cast<unsigned>(block % grid.x), static_cast<unsigned>(block / grid.x % grid.y),
            static_cast<unsigned>(block / (uint64_t{grid.x} * grid.y))};
  }

  const Launch& launch_;
  const uint64_t blocks_;
  std::atomic<uint64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::exception_ptr failure_;
};

}  // namespace

void launch(Launch&& launch, cudaStream_t stream) {
  const std::string wrong = configuration_error(launch);
  const std::string kernel = std::string("kernel ") + launch.name + ": ";
  if (!wrong.empty()) {
    runtime::set_last_error(cudaErrorInvalidConfiguration);
    throw Error(kernel + "launch configuration: " + wrong);
  }
  const cudaError_t error = runtime::enqueue_kernel(stream, [launch = std::move(launch)] { Grid(launch).run(); });
  if (error != cudaSuccess)
    throw Error(kernel + "launch: " + cudaGetErrorName(error) + ": " + cudaGetErrorString(error));
}

}  // namespace simt::detail
