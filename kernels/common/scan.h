// Device-independent parts of scans: slices along a dimension, and how states are combined.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/scan.h>

#include <cmath>
#include <limits>

namespace brigade::kernels {

struct ScanPlan {
  Tensor x, factor;  // dense [outer, length, inner]; factor: a of a recurrence, undefined elsewhere
  Tensor result;     // not filled
  int64_t outer = 1, length = 1, inner = 1;
};
// Throw DTypeError, ShapeError, DeviceError.
ScanPlan prepare_scan(const Tensor& x, int dim, ScanOp op);
ScanPlan prepare_linear_recurrence(const Tensor& b, const Tensor& a, int dim);

// A state represents a range of elements; `join` combines two consecutive ranges. C: the compute type.
template <class C>
struct SumScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return C(0); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) { return static_cast<C>(left + right); }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
template <class C>
struct ProductScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return C(1); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) { return static_cast<C>(left * right); }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
template <class C>
struct LogSumExpScan {
  using State = C;
  BRIGADE_HOST_DEVICE static State nothing() { return -std::numeric_limits<C>::infinity(); }
  BRIGADE_HOST_DEVICE static State join(State left, State right) {
    const bool left_is_larger = left > right || left != left;
    const C large = left_is_larger ? left : right;
    const C small = left_is_larger ? right : left;
    // Equal infinities: their difference would be a NaN.
    return large == small ? large + static_cast<C>(0.6931471805599453) : large + std::log1p(std::exp(small - large));
  }
  BRIGADE_HOST_DEVICE static C value(State state) { return state; }
};
// y = slope * (what came before) + y
template <class C>
struct RecurrenceScan {
  struct State {
    C slope, y;
  };
  BRIGADE_HOST_DEVICE static State nothing() { return {C(1), C(0)}; }
  BRIGADE_HOST_DEVICE static State join(State left, State right) {
    return {left.slope * right.slope, right.slope * left.y + right.y};
  }
  BRIGADE_HOST_DEVICE static C value(State state) { return state.y; }
};

}  // namespace brigade::kernels
