// Checks, promoted dtype and broadcast shape of addcmul, addcdiv and lerp.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/check_floating.h>
#include <brigade/kernels/common/ternary.h>
#include <brigade/kernels/promotion.h>

#include <string>

namespace brigade::kernels {

namespace {

void check(const char* op, const Tensor& first, const Tensor& other) {
  if (first.device() != other.device()) {
    throw DeviceError("{}: all tensors must be on one device, got {} and {}", op, first.device(), other.device());
  }
}

}  // namespace

TernaryOperands prepare_ternary(const Tensor& a, const Tensor& b, const Tensor& c, TernaryOp op) {
  constexpr const char* kNames[] = {"addcmul", "addcdiv", "lerp"};
  const char* const name = kNames[static_cast<int>(op)];
  check(name, a, b);
  check(name, a, c);
  const DType dtype = result_type({a, b, c});
  check_floating(dtype, name);
  const Shape sizes = broadcast_shapes(broadcast_shapes(a.sizes(), b.sizes()), c.sizes());
  return {cast(a, dtype), cast(b, dtype), cast(c, dtype), empty(sizes, {dtype, a.device()})};
}

Operands prepare_lerp(const Tensor& a, const Tensor& b) {
  check("lerp", a, b);
  const DType dtype = result_type({a, b});
  check_floating(dtype, "lerp");
  return {cast(a, dtype), cast(b, dtype), empty(broadcast_shapes(a.sizes(), b.sizes()), {dtype, a.device()})};
}

}  // namespace brigade::kernels
