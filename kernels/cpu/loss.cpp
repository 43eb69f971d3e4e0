#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/loss.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>
#include <brigade/kernels/softmax.h>

namespace brigade::kernels {

namespace {

// Losses come in the compute type; the result has `dtype`.
Tensor reduce_loss(const Tensor& losses, Reduction reduction, DType dtype) {
  if (reduction == Reduction::None) return cast(losses, dtype);
  return cast(reduction == Reduction::Mean ? mean(losses, {}) : sum(losses, {}), dtype);
}

DType wide(DType dtype) { return is_half(dtype) ? kFloat32 : dtype; }

CrossEntropy cross_entropy_cpu(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index) {
  const ClassSizes shape = check_classes(logits, target);
  CrossEntropy result;
  result.log_probs = contiguous(log_softmax(logits, shape.class_dim));
  const Tensor classes = contiguous(target);
  const auto* wanted = classes.data_ptr<int64_t>();
  int64_t counted = 0;
  for (int64_t i = 0; i < target.numel(); ++i) {
    if (wanted[i] == ignore_index) continue;
    ++counted;
    if (wanted[i] < 0 || wanted[i] >= shape.classes)
      throw IndexError(index_error_text(kTargetClass, wanted[i], i, shape.classes));
  }
  const Tensor losses = empty(target.sizes(), wide(logits.dtype()));
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    using C = compute_type<T>;
    const T* log_probs = static_cast<const T*>(result.log_probs.raw_data());
    C* out = static_cast<C*>(losses.raw_data());
    for (int64_t i = 0; i < target.numel(); ++i) {
      const int64_t row = i / shape.spatial;
      const int64_t at = i % shape.spatial;
      const bool ignored = wanted[i] == ignore_index;
      out[i] = ignored ? C(0) : -static_cast<C>(log_probs[(row * shape.classes + wanted[i]) * shape.spatial + at]);
    }
  });
  if (reduction == Reduction::Mean) {
    result.denominator = scalar_tensor(static_cast<double>(counted));
    const Tensor mean = binary_scalar(sum(losses, {}), static_cast<double>(counted), BinaryOp::Div, false);
    result.loss = cast(mean, logits.dtype());
  } else {
    result.loss = reduce_loss(losses, reduction, logits.dtype());
  }
  return result;
}

Tensor cross_entropy_backward_cpu(const Tensor& grad, const Tensor& log_probs, const Tensor& target,
                                  const Tensor& denominator, int64_t ignore_index) {
  const ClassSizes shape = check_classes(log_probs, target);
  check_loss_gradient(grad, target.sizes(), "cross_entropy");
  const Tensor classes = contiguous(target);
  const Tensor g = contiguous(grad);
  Tensor result = empty(log_probs.sizes(), log_probs.options());
  visit_floating(log_probs.dtype(), "cross_entropy backward", [&]<class T>() {
    using C = compute_type<T>;
    const auto* wanted = classes.data_ptr<int64_t>();
    const T* logs = static_cast<const T*>(log_probs.raw_data());
    const T* slopes = static_cast<const T*>(g.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const C scale = static_cast<C>(denominator.defined() ? 1.0 / *denominator.template data_ptr<double>() : 1.0);
    const bool one_slope = g.numel() == 1;
    cpu::parallel_for(
        shape.rows,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            for (int64_t at = 0; at < shape.spatial; ++at) {
              const int64_t i = row * shape.spatial + at;
              const bool ignored = wanted[i] == ignore_index;
              const C slope = ignored ? C(0) : static_cast<C>(slopes[one_slope ? 0 : i]) * scale;
              const T* from = logs + row * shape.classes * shape.spatial + at;
              T* to = out + row * shape.classes * shape.spatial + at;
              for (int64_t c = 0; c < shape.classes; ++c) {
                to[c * shape.spatial] =
                    ignored ? T(0.0F) : static_cast<T>(slope * cpu::exp(static_cast<C>(from[c * shape.spatial])));
              }
              if (ignored) continue;
              const int64_t chosen = wanted[i] * shape.spatial;
              to[chosen] = static_cast<T>(slope * (cpu::exp(static_cast<C>(from[chosen])) - C(1)));
            }
          }
        },
        shape.classes * shape.spatial * 8);
  });
  return result;
}

// f(x, z) for each element, in the compute type.
template <class F>
Tensor pairwise(const Tensor& x, const Tensor& z, const char* what, F f) {
  check_pair(x, z, what);
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(z);
  Tensor result = empty(x.sizes(), wide(x.dtype()));
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* p = static_cast<const T*>(a.raw_data());
    const T* q = static_cast<const T*>(b.raw_data());
    C* out = static_cast<C*>(result.raw_data());
    cpu::parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = f(static_cast<C>(p[i]), static_cast<C>(q[i]));
        },
        8);
  });
  return result;
}

// The gradient of each element's loss, times the gradient of the reduced loss.
Tensor apply_reduction(const Tensor& slopes, const Tensor& grad, Reduction reduction, const char* what) {
  check_loss_gradient(grad, slopes.sizes(), what);
  Tensor product = binary(slopes, cast(grad, slopes.dtype()), BinaryOp::Mul);
  if (reduction == Reduction::Mean)
    product = binary_scalar(product, static_cast<double>(slopes.numel()), BinaryOp::Div, false);
  return cast(product, grad.dtype());
}

Tensor bce_with_logits_cpu(const Tensor& x, const Tensor& target, Reduction reduction) {
  const Tensor losses = pairwise(x, target, "binary_cross_entropy_with_logits", []<class C>(C v, C z) {
    return (v > C(0) ? v : C(0)) - v * z + std::log1p(cpu::exp(v > C(0) ? -v : v));
  });
  return reduce_loss(losses, reduction, x.dtype());
}
Tensor bce_with_logits_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction) {
  const char* const what = "binary_cross_entropy_with_logits";
  return apply_reduction(pairwise(x, target, what, [](auto v, auto z) { return cpu::sigmoid(v) - z; }), grad, reduction,
                         what);
}

Tensor mse_loss_cpu(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduce_loss(pairwise(x, target, "mse_loss", SquaredDifference{}), reduction, x.dtype());
}
Tensor mse_loss_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction) {
  return apply_reduction(pairwise(x, target, "mse_loss", SquaredDifferenceSlope{}), grad, reduction, "mse_loss");
}

}  // namespace

constinit Kernel<CrossEntropy(const Tensor&, const Tensor&, Reduction, int64_t)> cross_entropy("cross_entropy",
                                                                                               &cross_entropy_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, int64_t)> cross_entropy_backward(
    "cross_entropy_backward", &cross_entropy_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Reduction)> bce_with_logits("bce_with_logits",
                                                                                  &bce_with_logits_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, Reduction)> bce_with_logits_backward(
    "bce_with_logits_backward", &bce_with_logits_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Reduction)> mse_loss("mse_loss", &mse_loss_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, Reduction)> mse_loss_backward(
    "mse_loss_backward", &mse_loss_backward_cpu);

}  // namespace brigade::kernels
