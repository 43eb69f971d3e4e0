#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/data_or_null.h>
#include <brigade/kernels/detail/foreach_checks.h>
#include <brigade/kernels/detail/optimizer_math.h>

#include <type_traits>

namespace brigade::kernels {

namespace {

// The steps of one parameter; the arguments are checked.
template <class T>
void sgd(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdStep<compute_type<T>>& step) {
  using C = compute_type<T>;
  T* p = static_cast<T*>(param.raw_data());
  const T* g = static_cast<const T*>(grad.raw_data());
  T* m = data_or_null<T>(momentum_buffer);
  cpu::parallel_for(param.numel(), [&](int64_t begin, int64_t end) {
    if (!m) {
      for (int64_t i = begin; i < end; ++i)
        p[i] = static_cast<T>(step(static_cast<C>(p[i]), static_cast<C>(g[i])));
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      C velocity = static_cast<C>(m[i]);
      const C value = step(static_cast<C>(p[i]), static_cast<C>(g[i]), velocity);
      m[i] = static_cast<T>(velocity);
      p[i] = static_cast<T>(value);
    }
  });
}

template <class T>
void adam(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
          const Tensor& max_exp_avg_sq, const AdamStep<compute_type<T>>& step) {
  using C = compute_type<T>;
  T* p = static_cast<T*>(param.raw_data());
  const T* g = static_cast<const T*>(grad.raw_data());
  T* m = static_cast<T*>(exp_avg.raw_data());
  T* v = static_cast<T*>(exp_avg_sq.raw_data());
  T* highest = data_or_null<T>(max_exp_avg_sq);
  const auto run = [&](int64_t begin, int64_t end, auto amsgrad) {
    for (int64_t i = begin; i < end; ++i) {
      C first = static_cast<C>(m[i]);
      C second = static_cast<C>(v[i]);
      C bound = amsgrad ? static_cast<C>(highest[i]) : C(0);
      const C value = step.template next<amsgrad>(static_cast<C>(p[i]), static_cast<C>(g[i]), first, second, bound);
      m[i] = static_cast<T>(first);
      v[i] = static_cast<T>(second);
      if constexpr (amsgrad) highest[i] = static_cast<T>(bound);
      p[i] = static_cast<T>(value);
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
}

void foreach_sgd_step_cpu(std::span<const Tensor> params, std::span<const Tensor> grads,
                          std::span<const Tensor> momentum_buffers, const SgdParams& s) {
  check_foreach_sgd(params, grads, momentum_buffers);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "sgd step", [&]<class T>() {
    const SgdStep<compute_type<T>> step(s);
    for (size_t i = 0; i < params.size(); ++i)
      sgd<T>(params[i], grads[i], momentum_buffers.empty() ? Tensor() : momentum_buffers[i], step);
  });
}

void foreach_adam_step_cpu(std::span<const Tensor> params, std::span<const Tensor> grads,
                           std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                           std::span<const Tensor> max_exp_avg_sqs, const AdamParams& a) {
  check_foreach_adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs);
  if (params.empty()) return;
  visit_floating(params.front().dtype(), "adam step", [&]<class T>() {
    const AdamStep<compute_type<T>> step(a);
    for (size_t i = 0; i < params.size(); ++i) {
      adam<T>(params[i], grads[i], exp_avgs[i], exp_avg_sqs[i], max_exp_avg_sqs.empty() ? Tensor() : max_exp_avg_sqs[i],
              step);
    }
  });
}

}  // namespace

constinit Kernel<void(std::span<const Tensor>, std::span<const Tensor>, std::span<const Tensor>, const SgdParams&)>
    foreach_sgd_step("foreach_sgd_step", &foreach_sgd_step_cpu);
constinit Kernel<void(std::span<const Tensor>, std::span<const Tensor>, std::span<const Tensor>,
                      std::span<const Tensor>, std::span<const Tensor>, const AdamParams&)>
    foreach_adam_step("foreach_adam_step", &foreach_adam_step_cpu);

}  // namespace brigade::kernels
