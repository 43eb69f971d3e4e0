#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/cpu/detail/parallel.h>

#include <cmath>

namespace brigade::kernels {

void check_optimizer_tensors(const Tensor& param, std::initializer_list<std::pair<const char*, Tensor>> tensors) {
  for (const auto& [what, other] : tensors) {
    if (!other.defined() || (other.sizes() == param.sizes() && other.dtype() == param.dtype() &&
                             other.device() == param.device() && other.is_contiguous() && param.is_contiguous()))
      continue;
    throw ShapeError(std::string("optimizer step: ") + what + " must be contiguous and like the parameter " +
                     describe(param) + ", got " + describe(other));
  }
}

namespace {

void sgd_step_cpu(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& s) {
  check_optimizer_tensors(param, {{"gradient", grad}, {"momentum buffer", momentum_buffer}});
  visit_floating(param.dtype(), "sgd step", [&]<class T>() {
    using C = compute_type<T>;
    T* p = static_cast<T*>(param.raw_data());
    const T* g = static_cast<const T*>(grad.raw_data());
    T* m = momentum_buffer.defined() ? static_cast<T*>(momentum_buffer.raw_data()) : nullptr;
    const C lr = static_cast<C>(s.lr), decay = static_cast<C>(s.weight_decay), sign = s.maximize ? C(-1) : C(1);
    const C momentum = static_cast<C>(s.momentum), fresh = static_cast<C>(s.first_step ? 1 : 1 - s.dampening);
    const C kept = s.first_step ? C(0) : momentum;
    cpu::parallel_for(param.numel(), [&](int64_t begin, int64_t end) {
      if (!m) {
        for (int64_t i = begin; i < end; ++i) {
          const C value = static_cast<C>(p[i]);
          p[i] = static_cast<T>(value - lr * (sign * static_cast<C>(g[i]) + decay * value));
        }
        return;
      }
      for (int64_t i = begin; i < end; ++i) {
        const C value = static_cast<C>(p[i]);
        const C slope = sign * static_cast<C>(g[i]) + decay * value;
        // The first step ignores what the buffer holds (it may be uninitialised, so it is not multiplied).
        const C velocity = (s.first_step ? C(0) : kept * static_cast<C>(m[i])) + fresh * slope;
        m[i] = static_cast<T>(velocity);
        p[i] = static_cast<T>(value - lr * (s.nesterov ? slope + momentum * velocity : velocity));
      }
    });
  });
}

void adam_step_cpu(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                   const Tensor& max_exp_avg_sq, const AdamParams& a) {
  check_optimizer_tensors(
      param,
      {{"gradient", grad}, {"exp_avg", exp_avg}, {"exp_avg_sq", exp_avg_sq}, {"max_exp_avg_sq", max_exp_avg_sq}});
  visit_floating(param.dtype(), "adam step", [&]<class T>() {
    using C = compute_type<T>;
    T* p = static_cast<T*>(param.raw_data());
    const T* g = static_cast<const T*>(grad.raw_data());
    T* m = static_cast<T*>(exp_avg.raw_data());
    T* v = static_cast<T*>(exp_avg_sq.raw_data());
    T* highest = max_exp_avg_sq.defined() ? static_cast<T*>(max_exp_avg_sq.raw_data()) : nullptr;
    const double correction1 = 1 - std::pow(a.beta1, static_cast<double>(a.step));
    const double correction2 = 1 - std::pow(a.beta2, static_cast<double>(a.step));
    const C step_size = static_cast<C>(a.lr / correction1), root = static_cast<C>(std::sqrt(correction2));
    const C beta1 = static_cast<C>(a.beta1), beta2 = static_cast<C>(a.beta2), rest1 = static_cast<C>(1 - a.beta1),
            rest2 = static_cast<C>(1 - a.beta2);
    const C eps = static_cast<C>(a.eps), sign = a.maximize ? C(-1) : C(1);
    const C decay = static_cast<C>(a.decoupled_weight_decay ? 0 : a.weight_decay);
    const C shrink = static_cast<C>(a.decoupled_weight_decay ? 1 - a.lr * a.weight_decay : 1);
    const auto run = [&](int64_t begin, int64_t end, auto amsgrad) {
      for (int64_t i = begin; i < end; ++i) {
        const C value = static_cast<C>(p[i]) * shrink;
        const C slope = sign * static_cast<C>(g[i]) + decay * value;
        const C first = beta1 * static_cast<C>(m[i]) + rest1 * slope;
        const C second = beta2 * static_cast<C>(v[i]) + rest2 * slope * slope;
        m[i] = static_cast<T>(first);
        v[i] = static_cast<T>(second);
        C bound = second;
        if constexpr (amsgrad) {
          bound = static_cast<C>(highest[i]) > second ? static_cast<C>(highest[i]) : second;
          highest[i] = static_cast<T>(bound);
        }
        p[i] = static_cast<T>(value - step_size * first / (std::sqrt(bound) / root + eps));
      }
    };
    cpu::parallel_for(
        param.numel(),
        [&](int64_t begin, int64_t end) {
          if (highest) {
            run(begin, end, std::true_type());
          } else {
            run(begin, end, std::false_type());
          }
        },
        2);
  });
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const SgdParams&)> sgd_step("sgd_step",
                                                                                               &sgd_step_cpu);
constinit Kernel<void(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const AdamParams&)>
    adam_step("adam_step", &adam_step_cpu);

}  // namespace brigade::kernels
