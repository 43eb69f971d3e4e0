// The CUDA column of optimizer.h: one pass over the memory of a parameter, four elements of each tensor per thread.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/cuda/detail/vector.h>

#include <cmath>

namespace brigade::kernels {

namespace {

constexpr int kThreads = 256;
constexpr int kLength = 4;

// The numbers of one step, in the type that a parameter is computed in.
template <class C>
struct Sgd {
  C lr, momentum, kept, fresh, weight_decay, sign;
  bool nesterov, first_step;
  __device__ void operator()(C& param, C grad, C& velocity, bool has_buffer) const {
    const C slope = sign * grad + weight_decay * param;
    if (!has_buffer) {
      param = param - lr * slope;
      return;
    }
    // The first step ignores what the buffer holds (it may be uninitialised, so it is not multiplied).
    velocity = (first_step ? C(0) : kept * velocity) + fresh * slope;
    param = param - lr * (nesterov ? slope + momentum * velocity : velocity);
  }
};

template <class T>
__device__ void load_or_pad(const T* from, int64_t at, int64_t count, bool vectors, T (&values)[kLength]) {
  if (vectors && at + kLength <= count) {
    constexpr int kPart = static_cast<int>(sizeof(T)) * kLength > cuda::kVectorBytes ? kLength / 2 : kLength;
    for (int part = 0; part < kLength; part += kPart) {
      const auto vector = cuda::load_vector<T, kPart>(from + at + part);
      for (int k = 0; k < kPart; ++k)
        values[part + k] = vector.values[k];
    }
    return;
  }
  for (int k = 0; k < kLength; ++k)
    values[k] = at + k < count ? from[at + k] : T(0.0F);
}

template <class T>
__device__ void store_what_is_there(T* to, int64_t at, int64_t count, bool vectors, const T (&values)[kLength]) {
  if (vectors && at + kLength <= count) {
    constexpr int kPart = static_cast<int>(sizeof(T)) * kLength > cuda::kVectorBytes ? kLength / 2 : kLength;
    for (int part = 0; part < kLength; part += kPart) {
      cuda::Vector<T, kPart> vector;
      for (int k = 0; k < kPart; ++k)
        vector.values[k] = values[part + k];
      cuda::store_vector<T, kPart>(to + at + part, vector);
    }
    return;
  }
  for (int k = 0; k < kLength && at + k < count; ++k)
    to[at + k] = values[k];
}

template <class T>
__global__ void __launch_bounds__(kThreads)
    sgd_kernel(int64_t count, bool vectors, Sgd<compute_type<T>> step, T* param, const T* grad, T* buffer) {
  using C = compute_type<T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kLength;
  if (at >= count) return;
  T p[kLength], g[kLength], m[kLength];
  load_or_pad(param, at, count, vectors, p);
  load_or_pad(grad, at, count, vectors, g);
  if (buffer) load_or_pad(buffer, at, count, vectors, m);
  for (int k = 0; k < kLength; ++k) {
    C value = static_cast<C>(p[k]);
    C velocity = buffer ? static_cast<C>(m[k]) : C(0);
    step(value, static_cast<C>(g[k]), velocity, buffer != nullptr);
    p[k] = static_cast<T>(value);
    m[k] = static_cast<T>(velocity);
  }
  if (buffer) store_what_is_there(buffer, at, count, vectors, m);
  store_what_is_there(param, at, count, vectors, p);
}

template <class C>
struct Adam {
  C step_size, root, beta1, beta2, rest1, rest2, eps, sign, weight_decay, shrink;
};

template <class T, bool amsgrad>
__global__ void __launch_bounds__(kThreads) adam_kernel(int64_t count, bool vectors, Adam<compute_type<T>> a, T* param,
                                                        const T* grad, T* exp_avg, T* exp_avg_sq, T* max_exp_avg_sq) {
  using C = compute_type<T>;
  const int64_t at = (static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x) * kLength;
  if (at >= count) return;
  T p[kLength], g[kLength], m[kLength], v[kLength], highest[kLength];
  load_or_pad(param, at, count, vectors, p);
  load_or_pad(grad, at, count, vectors, g);
  load_or_pad(exp_avg, at, count, vectors, m);
  load_or_pad(exp_avg_sq, at, count, vectors, v);
  if constexpr (amsgrad) load_or_pad(max_exp_avg_sq, at, count, vectors, highest);
  for (int k = 0; k < kLength; ++k) {
    const C value = static_cast<C>(p[k]) * a.shrink;
    const C slope = a.sign * static_cast<C>(g[k]) + a.weight_decay * value;
    const C first = a.beta1 * static_cast<C>(m[k]) + a.rest1 * slope;
    const C second = a.beta2 * static_cast<C>(v[k]) + a.rest2 * slope * slope;
    m[k] = static_cast<T>(first);
    v[k] = static_cast<T>(second);
    C bound = second;
    if constexpr (amsgrad) {
      bound = static_cast<C>(highest[k]) > second ? static_cast<C>(highest[k]) : second;
      highest[k] = static_cast<T>(bound);
    }
    p[k] = static_cast<T>(value - a.step_size * first / (std::sqrt(bound) / a.root + a.eps));
  }
  store_what_is_there(exp_avg, at, count, vectors, m);
  store_what_is_there(exp_avg_sq, at, count, vectors, v);
  if constexpr (amsgrad) store_what_is_there(max_exp_avg_sq, at, count, vectors, highest);
  store_what_is_there(param, at, count, vectors, p);
}

// Whether all tensors start where a vector may; undefined ones do not matter.
bool all_aligned(std::initializer_list<Tensor> tensors) {
  for (const Tensor& tensor : tensors) {
    if (tensor.defined() && reinterpret_cast<uintptr_t>(tensor.raw_data()) % cuda::kVectorBytes != 0) return false;
  }
  return true;
}

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.raw_data()) : nullptr;
}

void sgd_step_cuda(const Tensor& param, const Tensor& grad, const Tensor& momentum_buffer, const SgdParams& s) {
  check_optimizer_tensors(param, {{"gradient", grad}, {"momentum buffer", momentum_buffer}});
  const int64_t count = param.numel();
  const bool vectors = all_aligned({param, grad, momentum_buffer});
  visit_floating(param.dtype(), "sgd step", [&]<class T>() {
    using C = compute_type<T>;
    const Sgd<C> step{static_cast<C>(s.lr),
                      static_cast<C>(s.momentum),
                      s.first_step ? C(0) : static_cast<C>(s.momentum),
                      static_cast<C>(s.first_step ? 1 : 1 - s.dampening),
                      static_cast<C>(s.weight_decay),
                      s.maximize ? C(-1) : C(1),
                      s.nesterov,
                      s.first_step};
    cuda::launch({"sgd_step", cuda::blocks_for(count, kThreads * kLength), kThreads}, param.device(), &sgd_kernel<T>,
                 count, vectors, step, static_cast<T*>(param.raw_data()), static_cast<const T*>(grad.raw_data()),
                 data_or_null<T>(momentum_buffer));
  });
}

void adam_step_cuda(const Tensor& param, const Tensor& grad, const Tensor& exp_avg, const Tensor& exp_avg_sq,
                    const Tensor& max_exp_avg_sq, const AdamParams& a) {
  check_optimizer_tensors(
      param,
      {{"gradient", grad}, {"exp_avg", exp_avg}, {"exp_avg_sq", exp_avg_sq}, {"max_exp_avg_sq", max_exp_avg_sq}});
  const int64_t count = param.numel();
  const bool vectors = all_aligned({param, grad, exp_avg, exp_avg_sq, max_exp_avg_sq});
  const double correction1 = 1 - std::pow(a.beta1, static_cast<double>(a.step));
  const double correction2 = 1 - std::pow(a.beta2, static_cast<double>(a.step));
  visit_floating(param.dtype(), "adam step", [&]<class T>() {
    using C = compute_type<T>;
    const Adam<C> step{static_cast<C>(a.lr / correction1),
                       static_cast<C>(std::sqrt(correction2)),
                       static_cast<C>(a.beta1),
                       static_cast<C>(a.beta2),
                       static_cast<C>(1 - a.beta1),
                       static_cast<C>(1 - a.beta2),
                       static_cast<C>(a.eps),
                       a.maximize ? C(-1) : C(1),
                       static_cast<C>(a.decoupled_weight_decay ? 0 : a.weight_decay),
                       static_cast<C>(a.decoupled_weight_decay ? 1 - a.lr * a.weight_decay : 1)};
    cuda::launch({"adam_step", cuda::blocks_for(count, kThreads * kLength), kThreads}, param.device(),
                 max_exp_avg_sq.defined() ? &adam_kernel<T, true> : &adam_kernel<T, false>, count, vectors, step,
                 static_cast<T*>(param.raw_data()), static_cast<const T*>(grad.raw_data()),
                 static_cast<T*>(exp_avg.raw_data()), static_cast<T*>(exp_avg_sq.raw_data()),
                 data_or_null<T>(max_exp_avg_sq));
  });
}

const AddKernel add_sgd_step(sgd_step, kCUDA, &sgd_step_cuda);
const AddKernel add_adam_step(adam_step, kCUDA, &adam_step_cuda);

}  // namespace

}  // namespace brigade::kernels
