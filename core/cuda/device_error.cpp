// Allocates the report of each device in page-locked memory, and throws the errors that kernels write there.
#include <brigade/core/cuda/error.h>

#include <brigade/core/cuda/stream.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>

namespace brigade::cuda {
namespace {

constexpr int kMaxDevices = 64;

std::mutex mutex;
constinit std::array<std::atomic<IndexReport*>, kMaxDevices> reports{};

IndexReport* make_report() {
  // A stream that is being captured, by any thread, must not make this allocation fail.
  cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  void* data = nullptr;
  const cudaError_t code = cudaHostAlloc(&data, sizeof(IndexReport), cudaHostAllocPortable | cudaHostAllocMapped);
  check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  check(code, "cudaHostAlloc");
  return new (data) IndexReport{};
}

bool launches_block() {
  static const bool blocking = [] {
    const char* const value = std::getenv("CUDA_LAUNCH_BLOCKING");
    return value && std::strcmp(value, "") != 0 && std::strcmp(value, "0") != 0;
  }();
  return blocking;
}

}  // namespace

IndexReport* index_report(int device) {
  std::atomic<IndexReport*>& entry = reports.at(static_cast<size_t>(device));
  if (IndexReport* const report = entry.load(std::memory_order_acquire)) return report;
  const std::lock_guard lock(mutex);
  if (!entry.load(std::memory_order_relaxed)) entry.store(make_report(), std::memory_order_release);
  return entry.load(std::memory_order_relaxed);
}

void throw_reported(int device) {
  IndexReport* const report = reports.at(static_cast<size_t>(device)).load(std::memory_order_acquire);
  if (!report) return;
  const auto has_news = [&] {
    return std::atomic_ref(report->written).load(std::memory_order_acquire) !=
           std::atomic_ref(report->thrown).load(std::memory_order_relaxed);
  };
  if (!has_news()) [[likely]]
    return;
  const std::lock_guard lock(mutex);
  if (!has_news()) return;  // another thread was faster
  const IndexReport found = *report;
  std::atomic_ref(report->thrown).store(found.written, std::memory_order_release);
  throw IndexError(found.where,
                   "{} (found late, by a kernel on cuda:{}{}{}; with CUDA_LAUNCH_BLOCKING=1 it is "
                   "thrown by the call that is at fault)",
                   index_error(*found.role, found.index, found.position, found.count).what(), device,
                   found.where.line() != 0 ? " that was queued at " : "", to_string(found.where));
}

void throw_reported_if_blocking(int device) {
  if (!launches_block()) return;
  const Stream stream = current_stream(device);
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream.get(), &status), "cudaStreamIsCapturing");
  if (status == cudaStreamCaptureStatusNone) stream.synchronize();
}

}  // namespace brigade::cuda
