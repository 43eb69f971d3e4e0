// The captures in progress, each with its memory pool, and the lookup of a stream's capture.
#include <brigade/core/cuda/detail/capture.h>

#include <brigade/core/cuda/error.h>

#include <atomic>
#include <map>
#include <mutex>

namespace brigade::cuda::detail {
namespace {

struct Captures {
  std::atomic<int> underway = 0;
  std::mutex mutex;
  std::map<CaptureId, MemPoolId> pools;
};
// Never destroyed, like the allocators that query it.
Captures& captures() {
  static auto* const instance = new Captures;
  return *instance;
}

}  // namespace

void capture_began(CaptureId capture, MemPoolId pool) {
  const std::lock_guard lock(captures().mutex);
  captures().pools.emplace(capture, pool);
  ++captures().underway;
}

void capture_ended(CaptureId capture) noexcept {
  const std::lock_guard lock(captures().mutex);
  if (captures().pools.erase(capture) > 0) --captures().underway;
}

CaptureId capture_of(cudaStream_t stream) {
  // The default stream cannot be captured; while a stream that waits for it is being captured, even
  // the query is not allowed.
  if (captures().underway == 0 || stream == nullptr || stream == cudaStreamLegacy) return 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  CaptureId id = 0;
  check(cudaStreamGetCaptureInfo(stream, &status, &id), "cudaStreamGetCaptureInfo");
  if (status == cudaStreamCaptureStatusInvalidated) return kBrokenCapture;
  return status == cudaStreamCaptureStatusNone ? 0 : id;
}

MemPoolId pool_of(cudaStream_t stream) {
  const CaptureId capture = capture_of(stream);
  if (capture == 0) return 0;
  const std::lock_guard lock(captures().mutex);
  const auto found = captures().pools.find(capture);
  return found == captures().pools.end() ? 0 : found->second;
}

AllowUnsafeCalls::AllowUnsafeCalls() : changed_(captures().underway > 0) {
  if (changed_) cudaThreadExchangeStreamCaptureMode(&mode_);
}
AllowUnsafeCalls::~AllowUnsafeCalls() {
  if (changed_) cudaThreadExchangeStreamCaptureMode(&mode_);
}

}  // namespace brigade::cuda::detail
