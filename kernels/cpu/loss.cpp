#include <brigade/kernels/loss.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/math.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>
#include <brigade/kernels/reduce.h>
#include <brigade/kernels/softmax.h>

namespace brigade::kernels {

namespace {

Tensor reduce_loss(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::None) return losses;
  return reduction == Reduction::Mean ? mean(losses, {}) : sum(losses, {});
}

// [N, C, spatial] sizes of logits; a single [C] counts as one row.
struct Classes {
  int64_t rows, classes, spatial;
};

Classes check_classes(const Tensor& logits, const Tensor& target) {
  if (target.dtype() != kInt64)
    throw DTypeError(std::string("cross_entropy: expected int64 targets, got ") + name(target.dtype()));
  Shape expected = logits.sizes();
  if (logits.dim() < 1)
    throw ShapeError("cross_entropy: expected logits [N, C, ...] or [C], got " + to_string(logits.sizes()));
  const int class_dim = logits.dim() == 1 ? 0 : 1;
  expected.erase(class_dim);
  if (target.sizes() != expected) {
    throw ShapeError("cross_entropy: logits " + to_string(logits.sizes()) + " need targets " + to_string(expected) +
                     ", got " + to_string(target.sizes()));
  }
  Classes result{logits.dim() == 1 ? 1 : logits.sizes()[0], logits.sizes()[class_dim], 1};
  for (int d = 2; d < logits.dim(); ++d)
    result.spatial *= logits.sizes()[d];
  return result;
}

CrossEntropy cross_entropy_cpu(const Tensor& logits, const Tensor& target, Reduction reduction, int64_t ignore_index) {
  const Classes shape = check_classes(logits, target);
  CrossEntropy result;
  result.log_probs = contiguous(log_softmax(logits, logits.dim() == 1 ? 0 : 1));
  const Tensor classes = contiguous(target);
  const auto* wanted = classes.data_ptr<int64_t>();
  Tensor losses = empty(target.sizes(), logits.options());
  int64_t counted = 0;
  for (int64_t i = 0; i < target.numel(); ++i) {
    if (wanted[i] == ignore_index) continue;
    ++counted;
    if (wanted[i] < 0 || wanted[i] >= shape.classes) {
      throw IndexError("cross_entropy: target " + std::to_string(wanted[i]) + " at position " + std::to_string(i) +
                       " is not a class 0.." + std::to_string(shape.classes - 1));
    }
  }
  visit_floating(logits.dtype(), "cross_entropy", [&]<class T>() {
    const T* log_probs = static_cast<const T*>(result.log_probs.raw_data());
    T* out = static_cast<T*>(losses.raw_data());
    for (int64_t i = 0; i < target.numel(); ++i) {
      const int64_t row = i / shape.spatial;
      const int64_t at = i % shape.spatial;
      const bool ignored = wanted[i] == ignore_index;
      out[i] = ignored ? T(0.0F)
                       : static_cast<T>(-static_cast<compute_type<T>>(
                             log_probs[(row * shape.classes + wanted[i]) * shape.spatial + at]));
    }
  });
  result.denominator = reduction == Reduction::Mean ? static_cast<double>(counted) : 1.0;
  if (reduction == Reduction::Mean) {
    result.loss = binary_scalar(sum(losses, {}), result.denominator, BinaryOp::Div, false);
  } else {
    result.loss = reduce_loss(losses, reduction);
  }
  return result;
}

Tensor cross_entropy_backward_cpu(const Tensor& grad, const Tensor& log_probs, const Tensor& target, double denominator,
                                  int64_t ignore_index) {
  const Classes shape = check_classes(log_probs, target);
  const Tensor classes = contiguous(target);
  const Tensor g = contiguous(grad);
  Tensor result = empty(log_probs.sizes(), log_probs.options());
  visit_floating(log_probs.dtype(), "cross_entropy backward", [&]<class T>() {
    using C = compute_type<T>;
    const auto* wanted = classes.data_ptr<int64_t>();
    const T* logs = static_cast<const T*>(log_probs.raw_data());
    const T* slopes = static_cast<const T*>(g.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const C scale = static_cast<C>(1.0 / denominator);
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
              if (!ignored)
                to[wanted[i] * shape.spatial] = static_cast<T>(static_cast<C>(to[wanted[i] * shape.spatial]) - slope);
            }
          }
        },
        shape.classes * shape.spatial * 8);
  });
  return result;
}

void check_same(const Tensor& x, const Tensor& target, const char* what) {
  if (x.sizes() == target.sizes() && x.dtype() == target.dtype()) return;
  throw ShapeError(std::string(what) + ": expected a target like the input " + describe(x) + ", got " +
                   describe(target));
}

// f(x, z) for each element.
template <class F>
Tensor pairwise(const Tensor& x, const Tensor& z, const char* what, F f) {
  check_same(x, z, what);
  const Tensor a = contiguous(x);
  const Tensor b = contiguous(z);
  Tensor result = empty(x.sizes(), x.options());
  visit_floating(x.dtype(), what, [&]<class T>() {
    using C = compute_type<T>;
    const T* p = static_cast<const T*>(a.raw_data());
    const T* q = static_cast<const T*>(b.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    cpu::parallel_for(
        x.numel(),
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i)
            out[i] = static_cast<T>(f(static_cast<C>(p[i]), static_cast<C>(q[i])));
        },
        8);
  });
  return result;
}

// The gradient of each element's loss, times the gradient of the reduced loss.
Tensor apply_reduction(const Tensor& slopes, const Tensor& grad, Reduction reduction) {
  const Tensor product = binary(slopes, grad, BinaryOp::Mul);
  if (reduction != Reduction::Mean) return product;
  return binary_scalar(product, static_cast<double>(slopes.numel()), BinaryOp::Div, false);
}

Tensor bce_with_logits_cpu(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduce_loss(pairwise(x, target, "binary_cross_entropy_with_logits",
                              []<class C>(C v, C z) {
                                return (v > C(0) ? v : C(0)) - v * z + std::log1p(cpu::exp(v > C(0) ? -v : v));
                              }),
                     reduction);
}
Tensor bce_with_logits_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction) {
  const Tensor slopes =
      pairwise(x, target, "binary_cross_entropy_with_logits", [](auto v, auto z) { return cpu::sigmoid(v) - z; });
  return apply_reduction(slopes, grad, reduction);
}

Tensor mse_loss_cpu(const Tensor& x, const Tensor& target, Reduction reduction) {
  return reduce_loss(pairwise(x, target, "mse_loss", [](auto v, auto z) { return (v - z) * (v - z); }), reduction);
}
Tensor mse_loss_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& target, Reduction reduction) {
  const Tensor slopes = pairwise(x, target, "mse_loss", [](auto v, auto z) { return 2 * (v - z); });
  return apply_reduction(slopes, grad, reduction);
}

}  // namespace

constinit Kernel<CrossEntropy(const Tensor&, const Tensor&, Reduction, int64_t)> cross_entropy("cross_entropy",
                                                                                               &cross_entropy_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, double, int64_t)> cross_entropy_backward(
    "cross_entropy_backward", &cross_entropy_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Reduction)> bce_with_logits("bce_with_logits",
                                                                                  &bce_with_logits_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, Reduction)> bce_with_logits_backward(
    "bce_with_logits_backward", &bce_with_logits_backward_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, Reduction)> mse_loss("mse_loss", &mse_loss_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, Reduction)> mse_loss_backward(
    "mse_loss_backward", &mse_loss_backward_cpu);

}  // namespace brigade::kernels
