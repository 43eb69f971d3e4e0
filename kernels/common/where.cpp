// The common dtype and shape of where, for tensors or numbers.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/where.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/promotion.h>

#include <string>

namespace brigade::kernels {

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
