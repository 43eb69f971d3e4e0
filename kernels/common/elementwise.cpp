// Device-independent parts of the elementwise kernels: checks, dtypes of results, and the functions built on copy().
#include <brigade/kernels/elementwise.h>

#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>

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

// --- Checks, promoted dtype and broadcast shape of pow, atan2, remainder and fmod.

namespace {

const char* name(BinaryFunction f) {
  constexpr const char* kNames[] = {"pow", "atan2", "remainder", "fmod"};
  return kNames[static_cast<int>(f)];
}

DType checked(DType dtype, BinaryFunction f) {
  if (dtype == kBool) {
    throw DTypeError("{}: not defined for bool tensors; convert with .to(kInt64)", name(f));
  }
  return f == BinaryFunction::Atan2 && !is_floating_point(dtype) ? kFloat32 : dtype;
}

}  // namespace

Operands prepare_binary_function(const Tensor& a, const Tensor& b, BinaryFunction f) {
  if (a.device() != b.device()) {
    throw DeviceError("{}: both tensors must be on one device, got {} and {}", name(f), a.device(), b.device());
  }
  const DType dtype = checked(result_type({a, b}), f);
  return {cast(a, dtype), cast(b, dtype),
          empty(broadcast_shapes(a.sizes(), b.sizes()), TensorOptions(dtype, a.device()))};
}

Operands prepare_binary_function_scalar(const Tensor& a, Scalar number, BinaryFunction f) {
  checked(a.dtype(), f);
  // Atan2 gives the dtype of a quotient, the others that of a product.
  return prepare_binary_scalar(a, number, f == BinaryFunction::Atan2 ? BinaryOp::Div : BinaryOp::Mul);
}

// --- Checks, promoted dtype and broadcast shape of addcmul, addcdiv and lerp.

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

// --- The result dtype of a clamp: integers stay integers if both bounds are integers.

ClampPlan prepare_clamp(const Tensor& x, const Borders& borders) {
  if (x.dtype() == kBool) throw DTypeError("clamp: not defined for a bool tensor; convert with .to(kInt64)");
  const auto takes = [&](const std::optional<Scalar>& border) { return border ? result_type(x, *border) : x.dtype(); };
  const DType dtype = promote_types(takes(borders.lower), takes(borders.upper));
  return {cast(x, dtype), empty(x.sizes(), {dtype, x.device()})};
}

// --- The common dtype and shape of where, for tensors or numbers.

namespace {

DType result_dtype(const Choice& a, const Choice& b) {
  if (a.tensor.defined() && b.tensor.defined()) return result_type({a.tensor, b.tensor});
  if (!a.tensor.defined() && !b.tensor.defined()) return promote_types(a.number.dtype(), b.number.dtype());
  return a.tensor.defined() ? result_type(a.tensor, b.number) : result_type(b.tensor, a.number);
}

}  // namespace

ChoicePlan prepare_where(const Tensor& condition, const Choice& a, const Choice& b) {
  if (condition.dtype() != kBool) {
    throw DTypeError("where: expected a bool condition, got {}; make one by a comparison", name(condition.dtype()));
  }
  const DType dtype = result_dtype(a, b);
  ChoicePlan plan;
  plan.condition = condition;
  Shape sizes = condition.sizes();
  const auto take = [&](const Choice& choice, Tensor& into) {
    if (!choice.tensor.defined()) return;
    if (choice.tensor.device() != condition.device()) {
      throw DeviceError("where: the condition is on {} and an operand on {}; both must be on one device",
                        condition.device(), choice.tensor.device());
    }
    sizes = broadcast_shapes(sizes, choice.tensor.sizes());
    into = cast(choice.tensor, dtype);
  };
  take(a, plan.a);
  take(b, plan.b);
  plan.out = empty(sizes, {dtype, condition.device()});
  return plan;
}

}  // namespace brigade::kernels
