// Bounds checks of indices in kernels: indices out of range are reported and skipped (core/cuda/device_error.h).
#pragma once

#include <brigade/core/cuda/device_error.h>
#include <brigade/kernels/cuda/detail/launch.h>

namespace brigade::kernels::cuda {

// A parameter of the kernel; after the launch the host calls throw_reported_if_blocking.
class IndexCheck {
 public:
  IndexCheck(Device device, const IndexRole& role, int64_t count)
      : report_(brigade::cuda::index_report(device.index)), role_(&role), count_(count), where_(CallSite::current()) {}

  // For indices that another kernel has already checked: reports nothing.
  static IndexCheck silent(int64_t count) { return IndexCheck(count); }

  // Whether the index is in range. A bad index is reported unless another report is pending on the host.
  __device__ bool operator()(int64_t index, int64_t position) const {
    if (is_good(index)) return true;
    if (report_) tell(index, position);
    return false;
  }
  __device__ bool is_good(int64_t index) const { return static_cast<uint64_t>(index) < static_cast<uint64_t>(count_); }

 private:
  explicit IndexCheck(int64_t count) : report_(nullptr), role_(nullptr), count_(count) {}

  __device__ void tell(int64_t index, int64_t position) const {
    const unsigned told = *const_cast<const volatile unsigned*>(&report_->thrown);
    if (atomicCAS(&report_->claimed, told, told + 1) != told) return;
    report_->role = role_;
    report_->index = index;
    report_->position = position;
    report_->count = count_;
    report_->where = where_;
    __threadfence_system();  // the report must be complete before it is marked as written
    *const_cast<volatile unsigned*>(&report_->written) = told + 1;
  }

  brigade::cuda::IndexReport* report_;
  const IndexRole* role_;
  int64_t count_;
  std::source_location where_;
};

}  // namespace brigade::kernels::cuda
