// Device-independent parts of the elementwise kernels: checks, dtypes of results, and the functions built on copy().
#include <brigade/kernels/elementwise.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/promotion.h>

#include <string>

namespace brigade::kernels {

namespace {

const char* name(BinaryOp op) {
  constexpr const char* kNames[] = {"add", "sub", "mul", "div", "maximum", "minimum"};
  return kNames[static_cast<int>(op)];
}

void check_devices(const Tensor& a, const Tensor& b, const char* what) {
  if (a.device() == b.device()) return;
  throw DeviceError("{}: both tensors must be on one device, got {} and {}", what, a.device(), b.device());
}

Operands prepare(const Tensor& a, const Tensor& b, DType dtype, DType result) {
  const Shape sizes = a.sizes() == b.sizes() ? a.sizes() : broadcast_shapes(a.sizes(), b.sizes());
  return {cast(a, dtype), cast(b, dtype), empty(sizes, {result, a.device()})};
}

}  // namespace

void check_fits(const Tensor& out, const Tensor& x, const char* what) {
  if (broadcast_shapes(out.sizes(), x.sizes()) != out.sizes()) {
    throw ShapeError("{}: {} does not broadcast to the target's shape {}", what, x.sizes(), out.sizes());
  }
}

void check_gradient_like(const Tensor& grad, const Tensor& x, const char* what) {
  if (grad.sizes() == x.sizes() && grad.dtype() == x.dtype()) return;
  throw ShapeError("{}: expected a gradient like {}, got {}", what, describe(x), describe(grad));
}

void check_difference(DType a, DType b) {
  if (a != kBool && b != kBool) return;
  throw DTypeError(
      "sub: Subtraction, the `-` operator, with a bool tensor is not supported; logical_not() inverts a mask, "
      "logical_xor() says where two differ, .to(kInt64) makes numbers of one");
}

Operands prepare_binary(const Tensor& a, const Tensor& b, BinaryOp op) {
  check_devices(a, b, name(op));
  DType dtype = result_type({a, b});
  if (op == BinaryOp::Sub) check_difference(a.dtype(), b.dtype());
  if (dtype == kBool && op == BinaryOp::Div) {
    throw DTypeError("div: not defined for two bool tensors; convert one with .to(kInt64)");
  }
  if (op == BinaryOp::Div && !is_floating_point(dtype)) dtype = kFloat32;
  return prepare(a, b, dtype, dtype);
}

Operands prepare_compare(const Tensor& a, const Tensor& b) {
  check_devices(a, b, "comparison");
  return prepare(a, b, result_type({a, b}), kBool);
}

Operands prepare_binary_scalar(const Tensor& a, Scalar scalar, BinaryOp op) {
  DType dtype = a.dtype();
  if (op == BinaryOp::Sub) check_difference(dtype, dtype);
  dtype = result_type(a, scalar);
  if (op == BinaryOp::Div && !is_floating_point(dtype)) dtype = kFloat32;
  return {cast(a, dtype), Tensor(), empty(a.sizes(), {dtype, a.device()})};
}

Tensor unary_of_bool(const Tensor& x, UnaryOp op) {
  if (op == UnaryOp::Square) return cast(x, kInt64);
  if (op == UnaryOp::Sign) return clone(x);
  throw DTypeError("{}: not defined for a bool tensor; use logical_not, or convert with .to(kInt64)",
                   op == UnaryOp::Neg ? "neg" : "abs");
}

void copy_between_devices(const Tensor& out, const Tensor& x) {
  // Cast and made contiguous on the source device, so that a single block of bytes is transferred.
  const Tensor dense = contiguous(cast(x, out.dtype()));
  const bool direct = out.is_contiguous() && out.numel() == x.numel();
  const Tensor arrived = direct ? out : empty(x.sizes(), out.options());
  copy_bytes(arrived.raw_data(), arrived.device(), dense.raw_data(), dense.device(), dense.nbytes());
  if (!direct) copy(out, arrived);
}

Tensor clone(const Tensor& x) {
  Tensor result = empty(x.sizes(), x.options());
  copy(result, x);
  return result;
}

Tensor contiguous(const Tensor& x) { return x.is_contiguous() ? x : clone(x); }

Tensor cast(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return x;
  Tensor result = empty(x.sizes(), {dtype, x.device()});
  copy(result, x);
  return result;
}

}  // namespace brigade::kernels
