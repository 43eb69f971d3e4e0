// One node for all smooth functions, with the derivative of each, and one for step functions.
#include <brigade/autograd/ops/elementwise.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/algebra.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/record.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/factory.h>

#include <numbers>

namespace brigade {
namespace {

using namespace autograd::detail::algebra;
using namespace autograd::detail;
using kernels::Function;

// `Derivative` computes the gradient, with differentiable operations, from grad and the saved tensor: x or the result.
enum class Keeps : uint8_t { Input, Output };

template <class Derivative>
struct FunctionNode final : autograd::Node {
  SavedTensor saved;
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    context.set(0, in_dtype(Derivative()(widened(grad), widened(saved.unpack(*this))), grad.dtype()));
  }
};

template <class Derivative>
Tensor unary(const char* op, const Tensor& x, Function f, Keeps keeps, SourceLocation where) {
  Tensor y = located(where, [&] { return of_reals(x, [f](const Tensor& r) { return kernels::function(r, f); }); });
  if (auto* node = record<FunctionNode<Derivative>>({.op = op, .where = where}, {x}, y)) {
    if (keeps == Keeps::Input) {
      node->saved.save_input(*node, x);
    } else {
      node->saved.save_output(*node, y);
    }
  }
  return y;
}

Tensor one_plus(const Tensor& x) { return x + 1.0; }

// x^(-3/2) / -2
struct RsqrtDerivative {
  Tensor operator()(const Tensor& g, const Tensor& y) const { return g * y * y * y * -0.5; }
};
struct SinDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g * cos_of(x); }
};
struct CosDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return -(g * sin_of(x)); }
};
// 1 / cos^2 x = 1 + tan^2 x
struct TanDerivative {
  Tensor operator()(const Tensor& g, const Tensor& y) const { return g * one_plus(square_of(y)); }
};
// 1 / sqrt(1 - x^2)
struct AsinDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g * rsqrt_of(1.0 - square_of(x)); }
};
struct AcosDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return -AsinDerivative()(g, x); }
};
struct AtanDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g / one_plus(square_of(x)); }
};
struct SinhDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g * cosh_of(x); }
};
struct CoshDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g * sinh_of(x); }
};
struct Log1pDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g / one_plus(x); }
};
// exp x
struct Expm1Derivative {
  Tensor operator()(const Tensor& g, const Tensor& y) const { return g * one_plus(y); }
};
// 1 / (x ln 2)
struct Log2Derivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g / x * (1 / std::numbers::ln2); }
};
struct Log10Derivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return g / x * (1 / std::numbers::ln10); }
};
// 2^x ln 2
struct Exp2Derivative {
  Tensor operator()(const Tensor& g, const Tensor& y) const { return g * y * std::numbers::ln2; }
};
// 2 / sqrt(pi) exp(-x^2)
struct ErfDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const {
    return g * exp_of(-square_of(x)) * (2 * std::numbers::inv_sqrtpi);
  }
};
struct ErfcDerivative {
  Tensor operator()(const Tensor& g, const Tensor& x) const { return -ErfDerivative()(g, x); }
};

// Step functions: the gradient is zeros, not undefined.
struct StepNode final : autograd::Node {
  void backward(BackwardContext& context) override {
    const Tensor& grad = context.grad();
    context.set(0, zeros(grad.sizes(), grad.options()));
  }
};

Tensor step(const autograd::OpInfo& info, const Tensor& x, Function f) {
  Tensor y =
      located(info.where, [&] { return is_floating_point(x.dtype()) ? kernels::function(x, f) : kernels::clone(x); });
  record<StepNode>(info, {x}, y);
  return y;
}

}  // namespace

Tensor rsqrt(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"rsqrt">(where, x)) return rsqrt(in[0], where);
  }
  return unary<RsqrtDerivative>("rsqrt", x, Function::Rsqrt, Keeps::Output, where);
}
Tensor sin(const Tensor& x, SourceLocation where) {
  return unary<SinDerivative>("sin", x, Function::Sin, Keeps::Input, where);
}
Tensor cos(const Tensor& x, SourceLocation where) {
  return unary<CosDerivative>("cos", x, Function::Cos, Keeps::Input, where);
}
Tensor tan(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"tan">(where, x)) return tan(in[0], where);
  }
  return unary<TanDerivative>("tan", x, Function::Tan, Keeps::Output, where);
}
Tensor asin(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"asin">(where, x)) return asin(in[0], where);
  }
  return unary<AsinDerivative>("asin", x, Function::Asin, Keeps::Input, where);
}
Tensor acos(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"acos">(where, x)) return acos(in[0], where);
  }
  return unary<AcosDerivative>("acos", x, Function::Acos, Keeps::Input, where);
}
Tensor atan(const Tensor& x, SourceLocation where) {
  return unary<AtanDerivative>("atan", x, Function::Atan, Keeps::Input, where);
}
Tensor sinh(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"sinh">(where, x)) return sinh(in[0], where);
  }
  return unary<SinhDerivative>("sinh", x, Function::Sinh, Keeps::Input, where);
}
Tensor cosh(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"cosh">(where, x)) return cosh(in[0], where);
  }
  return unary<CoshDerivative>("cosh", x, Function::Cosh, Keeps::Input, where);
}
Tensor log1p(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"log1p">(where, x)) return log1p(in[0], where);
  }
  return unary<Log1pDerivative>("log1p", x, Function::Log1p, Keeps::Input, where);
}
Tensor expm1(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"expm1">(where, x)) return expm1(in[0], where);
  }
  return unary<Expm1Derivative>("expm1", x, Function::Expm1, Keeps::Output, where);
}
Tensor log2(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"log2">(where, x)) return log2(in[0], where);
  }
  return unary<Log2Derivative>("log2", x, Function::Log2, Keeps::Input, where);
}
Tensor log10(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"log10">(where, x)) return log10(in[0], where);
  }
  return unary<Log10Derivative>("log10", x, Function::Log10, Keeps::Input, where);
}
Tensor exp2(const Tensor& x, SourceLocation where) {
  return unary<Exp2Derivative>("exp2", x, Function::Exp2, Keeps::Output, where);
}
Tensor erf(const Tensor& x, SourceLocation where) {
  return unary<ErfDerivative>("erf", x, Function::Erf, Keeps::Input, where);
}
Tensor erfc(const Tensor& x, SourceLocation where) {
  return unary<ErfcDerivative>("erfc", x, Function::Erfc, Keeps::Input, where);
}

Tensor floor(const Tensor& x, SourceLocation where) {
  return step({.op = "floor", .where = where}, x, Function::Floor);
}
Tensor ceil(const Tensor& x, SourceLocation where) { return step({.op = "ceil", .where = where}, x, Function::Ceil); }
Tensor round(const Tensor& x, SourceLocation where) {
  return step({.op = "round", .where = where}, x, Function::Round);
}
Tensor trunc(const Tensor& x, SourceLocation where) {
  return step({.op = "trunc", .where = where}, x, Function::Trunc);
}

}  // namespace brigade
