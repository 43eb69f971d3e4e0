// Functors and argument checks of ternary.h.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/ternary.h>

namespace brigade::kernels {

struct TernaryOperands {
  Tensor a, b, c;  // in the result's dtype, not broadcast
  Tensor out;      // not filled
};
TernaryOperands prepare_ternary(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op);
Operands prepare_lerp(const Tensor& a, const Tensor& b);

// Computed from the nearer end, so that a weight of 1 gives exactly b.
template <class C>
BRIGADE_HOST_DEVICE C lerp_of(C a, C b, C weight) {
  return (weight < C(0) ? -weight : weight) < C(0.5) ? a + weight * (b - a) : b - (b - a) * (C(1) - weight);
}

template <class C>
struct Ternary {
  TernaryOp op;
  C number;
  BRIGADE_HOST_DEVICE C operator()(C a, C b, C c) const {
    if (op == TernaryOp::Addcmul) return a + number * b * c;
    if (op == TernaryOp::Addcdiv) return a + number * b / c;
    return lerp_of(a, b, c);
  }
};
template <class C>
struct LerpWith {
  C weight;
  BRIGADE_HOST_DEVICE C operator()(C a, C b) const { return lerp_of(a, b, weight); }
};

}  // namespace brigade::kernels
