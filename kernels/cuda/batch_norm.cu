// CUDA kernels of batch norm. Statistics take one pass: values are summed in chunks in the compute type, and the
// chunks in double (detail/channel_reduce.h). The rest is an elementwise pass with three or four constants per channel.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cuda/detail/channel_reduce.h>

#include <algorithm>
#include <cmath>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

// --- statistics of a part of a channel's values

// The mean, and the sum of squared distances from it.
struct Moments {
  double count, mean, squares;
};
// Chan, Golub and LeVeque, "Updating formulae and a pairwise algorithm for computing sample
// variances" (1979).
struct Merge {
  __device__ Moments operator()(const Moments& a, const Moments& b) const {
    const double count = a.count + b.count;
    if (count == 0) return a;
    const double distance = b.mean - a.mean;
    const double share = b.count / count;
    return {count, a.mean + distance * share, a.squares + b.squares + distance * distance * a.count * share};
  }
};
template <int n, class C>
__device__ Moments moments_of(const C (&values)[n]) {
  C sum = C(0);
  for (int k = 0; k < n; ++k)
    sum += values[k];
  const C middle = sum / C(n);
  C rest = C(0);  // rounding error of the mean
  C squares = C(0);
  for (int k = 0; k < n; ++k) {
    const C distance = values[k] - middle;
    rest += distance;
    squares += distance * distance;
  }
  return {n, static_cast<double>(middle) + static_cast<double>(rest) / n, static_cast<double>(squares)};
}

// Sums of the gradient, and of the gradient times the normalized x.
struct GradientSums {
  double sum, dot;
};
struct AddSums {
  __device__ GradientSums operator()(const GradientSums& a, const GradientSums& b) const {
    return {a.sum + b.sum, a.dot + b.dot};
  }
};

__device__ Moments shuffle_xor(const Moments& value, int lane_mask) {
  return {cuda::shuffle_xor(value.count, lane_mask), cuda::shuffle_xor(value.mean, lane_mask),
          cuda::shuffle_xor(value.squares, lane_mask)};
}
__device__ GradientSums shuffle_xor(const GradientSums& value, int lane_mask) {
  return {cuda::shuffle_xor(value.sum, lane_mask), cuda::shuffle_xor(value.dot, lane_mask)};
}

// [2, C]
__device__ void store_pair(double* pairs, int64_t channels, int64_t c, const Moments& value) {
  pairs[c] = value.mean;
  pairs[channels + c] = value.squares;
}
__device__ void store_pair(double* pairs, int64_t channels, int64_t c, const GradientSums& value) {
  pairs[c] = value.sum;
  pairs[channels + c] = value.dot;
}

template <bool many_channels, int length, class T>
__global__ void __launch_bounds__(cuda::kChannelThreads)
    moments_kernel(BatchNormLayout layout, int64_t piece, const T* x, Moments* partial, double* moments) {
  using C = compute_type<T>;
  const cuda::ChannelShare<many_channels> share(layout.count() / length, piece);
  Moments seen{0, 0, 0};
  if (share.channel < layout.channels) {
    cuda::for_values<length>(layout, share, [&]<int n>(const int64_t(&offsets)[n]) {
      C values[n * length];
      cuda::load_values<length, n>(x, offsets, values);
      seen = Merge{}(seen, moments_of(values));
    });
  }
  cuda::finish_block<many_channels>(layout.channels, share.channel, seen, Merge{}, partial, moments);
}

// Values of any floating dtype, one per channel. Without a tensor, reads return a number and writes do nothing.
struct ChannelValues {
  void* data;
  DType dtype;
  double otherwise;
  explicit ChannelValues(const Tensor& tensor, double number = 0)
      : data(tensor.defined() ? tensor.raw_data() : nullptr),
        dtype(tensor.defined() ? tensor.dtype() : kFloat64),
        otherwise(number) {}
  __device__ double get(int64_t c) const {
    if (!data) return otherwise;
    switch (dtype) {
      case kFloat64: return static_cast<const double*>(data)[c];
      case kFloat32: return static_cast<double>(static_cast<const float*>(data)[c]);
      case kFloat16: return static_cast<double>(static_cast<float>(static_cast<const float16*>(data)[c]));
      default: return static_cast<double>(static_cast<float>(static_cast<const bfloat16*>(data)[c]));
    }
  }
  __device__ void set(int64_t c, double value) const {
    if (!data) return;
    switch (dtype) {
      case kFloat64: static_cast<double*>(data)[c] = value; break;
      case kFloat32: static_cast<float*>(data)[c] = static_cast<float>(value); break;
      case kFloat16: static_cast<float16*>(data)[c] = float16(static_cast<float>(value)); break;
      default: static_cast<bfloat16*>(data)[c] = bfloat16(static_cast<float>(value)); break;
    }
  }
};

template <bool many_channels, int length, class T>
__global__ void __launch_bounds__(cuda::kChannelThreads)
    gradient_sums_kernel(BatchNormLayout layout, int64_t piece, const T* grad, const T* x, ChannelValues mean,
                         ChannelValues invstd, GradientSums* partial, double* sums) {
  using C = compute_type<T>;
  const cuda::ChannelShare<many_channels> share(layout.count() / length, piece);
  GradientSums seen{0, 0};
  if (share.channel < layout.channels) {
    const C center = static_cast<C>(mean.get(share.channel));
    cuda::for_values<length>(layout, share, [&]<int n>(const int64_t(&offsets)[n]) {
      C slopes[n * length], values[n * length];
      cuda::load_values<length, n>(grad, offsets, slopes);
      cuda::load_values<length, n>(x, offsets, values);
      C sum = C(0), dot = C(0);
      for (int k = 0; k < n * length; ++k) {
        sum += slopes[k];
        dot += slopes[k] * (values[k] - center);
      }
      seen = AddSums{}(seen, {static_cast<double>(sum), static_cast<double>(dot)});
    });
    seen.dot *= invstd.get(share.channel);
  }
  cuda::finish_block<many_channels>(layout.channels, share.channel, seen, AddSums{}, partial, sums);
}

// --- elementwise, with constants per channel

template <class C>
struct Normalise {
  static constexpr int kConstants = 3;
  C center, scale, shift;
  __device__ Normalise(const C* constants, int64_t channels, int64_t c)
      : center(constants[c]), scale(constants[channels + c]), shift(constants[2 * channels + c]) {}
  __device__ C operator()(C x, C) const { return (x - center) * scale + shift; }
};
template <class C>
struct InputGradient {
  static constexpr int kConstants = 4;
  C gain, mean_slope, mean_dot, center;
  __device__ InputGradient(const C* constants, int64_t channels, int64_t c)
      : gain(constants[c]),
        mean_slope(constants[channels + c]),
        mean_dot(constants[2 * channels + c]),
        center(constants[3 * channels + c]) {}
  __device__ C operator()(C x, C grad) const { return gain * (grad - mean_slope - (x - center) * mean_dot); }
};

// One thread per channel: updates the running statistics from the batch's moments (of `count` values; null in
// evaluation, which uses the running statistics), and computes the constants of Normalise.
template <class C>
__global__ void __launch_bounds__(kThreads)
    statistics_kernel(int64_t channels, const double* moments, double count, double momentum, double eps,
                      ChannelValues weight, ChannelValues bias, ChannelValues running_mean, ChannelValues running_var,
                      C* mean, C* invstd, C* constants) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= channels) return;
  double center = running_mean.get(c);
  double variance = running_var.get(c);
  if (moments) {
    const double squares = moments[channels + c];
    running_mean.set(c, (1 - momentum) * center + momentum * moments[c]);
    running_var.set(c, (1 - momentum) * variance + momentum * (squares / (count - 1)));
    center = moments[c];
    variance = squares / count;
  }
  const double scale = 1 / std::sqrt(variance + eps);
  mean[c] = static_cast<C>(center);
  invstd[c] = static_cast<C>(scale);
  constants[c] = static_cast<C>(center);
  constants[channels + c] = static_cast<C>(weight.get(c) * scale);
  constants[2 * channels + c] = static_cast<C>(bias.get(c));
}

// One thread per channel: computes the constants of InputGradient, and the gradients of weight and bias if needed. With
// fixed statistics, the sums do not contribute to the gradient of x.
template <class C>
__global__ void __launch_bounds__(kThreads)
    gradient_constants_kernel(int64_t channels, const double* sums, double count, bool fixed, ChannelValues weight,
                              ChannelValues mean, ChannelValues invstd, C* constants, ChannelValues weight_grad,
                              ChannelValues bias_grad) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= channels) return;
  const double scale = invstd.get(c);
  constants[c] = static_cast<C>(weight.get(c) * scale);
  constants[channels + c] = fixed ? C(0) : static_cast<C>(sums[c] / count);
  constants[2 * channels + c] = fixed ? C(0) : static_cast<C>(sums[channels + c] / count * scale);
  constants[3 * channels + c] = static_cast<C>(mean.get(c));
  bias_grad.set(c, sums[c]);
  weight_grad.set(c, sums[channels + c]);
}

template <int length>
constexpr int kMapItems = length == 1 ? 4 : 2;  // vectors per thread

// The start of a range of memory, in [N, C, area].
struct ChannelPlace {
  uint32_t channel, place;
};

// out = f(x, grad) in memory order, starting at `begin`; a vector may span several channels. `grad` may be null.
template <int length, class F, class T>
__global__ void __launch_bounds__(kThreads)
    channel_map_kernel(uint32_t count, uint32_t channels, uint32_t area, ChannelPlace begin,
                       const compute_type<T>* constants, const T* x, const T* grad, T* out) {
  using C = compute_type<T>;
  using Index = uint32_t;  // 64-bit division is slow
  const Index first = (static_cast<Index>(blockIdx.x) * kThreads * kMapItems<length> + threadIdx.x) * length;
  cuda::Vector<T, length> values[kMapItems<length>], slopes[kMapItems<length>];
#pragma unroll
  for (int u = 0; u < kMapItems<length>; ++u) {
    const Index at = first + u * kThreads * length;
    if (at + length <= count) {
      values[u] = cuda::load_vector<T, length>(x + at);
      if (grad) slopes[u] = cuda::load_vector<T, length>(grad + at);
    } else {
      for (int k = 0; k < length; ++k) {
        values[u].values[k] = at + k < count ? x[at + k] : T(0.0F);
        if (grad) slopes[u].values[k] = at + k < count ? grad[at + k] : T(0.0F);
      }
    }
  }
#pragma unroll
  for (int u = 0; u < kMapItems<length>; ++u) {
    const Index at = first + u * kThreads * length;
    if (at >= count) return;
    const Index plane = (begin.place + at) / area;
    Index place = begin.place + at - plane * area;
    Index c = (begin.channel + plane) % channels;
    F f(constants, channels, c);
    cuda::Vector<T, length> result;
#pragma unroll
    for (int k = 0; k < length; ++k) {
      const C slope = grad ? static_cast<C>(slopes[u].values[k]) : C(0);
      result.values[k] = static_cast<T>(f(static_cast<C>(values[u].values[k]), slope));
      if (k + 1 < length && ++place == area) {
        place = 0;
        c = c + 1 == channels ? 0 : c + 1;
        f = F(constants, channels, c);
      }
    }
    if (at + length <= count) {
      cuda::store_vector<T, length>(out + at, result);
    } else {
      for (int k = 0; k < length && at + k < count; ++k)
        out[at + k] = result.values[k];
    }
  }
}

// One thread per channel, since there are few rows.
__global__ void __launch_bounds__(kThreads)
    combine_kernel(const double* rows, int64_t batches, int64_t channels, double* moments) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (c >= channels) return;
  Moments all{0, 0, 0};
  for (int64_t r = 0; r < batches; ++r) {
    const double* const row = rows + r * (2 * channels + 1);
    if (row[2 * channels] != 0) all = Merge{}(all, {row[2 * channels], row[c], row[channels + c]});
  }
  store_pair(moments, channels, c, all);
}

// --- on the host

// The limit per launch of channel_map_kernel: positions fit in 32 bits, and each launch starts at a vector.
constexpr int64_t kMostElements = int64_t{1} << 30;

Tensor batch_norm_moments_cuda(const Tensor& x) {
  const BatchNormPlan plan = prepare_batch_norm_moments(x);
  return visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    return cuda::reduce_channels<T, Moments>(
        plan.layout, x.device(), cuda::start_aligned({&plan.x}), Merge{},
        [&](auto many, auto length, const cuda::ChannelSplit& how, Moments* partial, double* moments) {
          cuda::launch({"batch_norm_moments", how.grid, how.block}, x.device(), &moments_kernel<many(), length(), T>,
                       plan.layout, how.piece, static_cast<const T*>(plan.x.raw_data()), partial, moments);
        });
  });
}

Tensor batch_norm_combine_cuda(const Tensor& rows) {
  const BatchNormRows all = prepare_batch_norm_combine(rows);
  cuda::launch({"batch_norm_combine", cuda::blocks_for(all.channels, kThreads), kThreads}, rows.device(),
               &combine_kernel, all.rows.data_ptr<double>(), all.batches, all.channels, all.result.data_ptr<double>());
  return all.result;
}

template <class T>
Tensor gradient_sums(const BatchNormGradientPlan& plan, const Tensor& mean, const Tensor& invstd) {
  const Device device = plan.x.device();
  return cuda::reduce_channels<T, GradientSums>(
      plan.layout, device, cuda::start_aligned({&plan.x, &plan.grad}), AddSums{},
      [&](auto many, auto length, const cuda::ChannelSplit& how, GradientSums* partial, double* sums) {
        cuda::launch({"batch_norm_gradient_sums", how.grid, how.block}, device,
                     &gradient_sums_kernel<many(), length(), T>, plan.layout, how.piece,
                     static_cast<const T*>(plan.grad.raw_data()), static_cast<const T*>(plan.x.raw_data()),
                     ChannelValues(mean), ChannelValues(invstd, 1), partial, sums);
      });
}

template <class F, class T>
void map_channels(const char* what, const BatchNormLayout& layout, const Tensor& constants, const Tensor& x,
                  const Tensor& grad, const Tensor& out) {
  using C = compute_type<T>;
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  const bool vectors = cuda::start_aligned({&x, &out, &grad});
  if (layout.area > kMostElements) {
    throw ShapeError("{}: at most {} elements of a channel in a sample on CUDA, got {}", what, kMostElements,
                     layout.area);
  }
  for (int64_t start = 0; start < x.numel(); start += kMostElements) {
    const int64_t count = std::min(kMostElements, x.numel() - start);
    const ChannelPlace begin{static_cast<uint32_t>(start / layout.area % layout.channels),
                             static_cast<uint32_t>(start % layout.area)};
    const auto run = [&]<int length>() {
      cuda::launch({what, cuda::blocks_for(count, kThreads * kMapItems<length> * length), kThreads}, x.device(),
                   &channel_map_kernel<length, F, T>, count, layout.channels, layout.area, begin,
                   static_cast<const C*>(constants.raw_data()), static_cast<const T*>(x.raw_data()) + start,
                   grad.defined() ? static_cast<const T*>(grad.raw_data()) + start : nullptr,
                   static_cast<T*>(out.raw_data()) + start);
    };
    vectors ? run.template operator()<kLength>() : run.template operator()<1>();
  }
}

// `moments` is undefined in evaluation.
template <class T>
void apply(const BatchNormPlan& plan, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
           const Tensor& running_var, const Tensor& moments, int64_t count, double momentum, double eps) {
  using C = compute_type<T>;
  const int64_t channels = plan.layout.channels;
  const Tensor constants = empty({Normalise<C>::kConstants, channels}, {dtype_of<C>, plan.x.device()});
  cuda::launch({"batch_norm_statistics", cuda::blocks_for(channels, kThreads), kThreads}, plan.x.device(),
               &statistics_kernel<C>, channels,
               moments.defined() ? static_cast<const double*>(moments.raw_data()) : nullptr, static_cast<double>(count),
               momentum, eps, ChannelValues(weight, 1), ChannelValues(bias), ChannelValues(running_mean),
               ChannelValues(running_var, 1), static_cast<C*>(plan.result.mean.raw_data()),
               static_cast<C*>(plan.result.invstd.raw_data()), static_cast<C*>(constants.raw_data()));
  map_channels<Normalise<C>, T>("batch_norm", plan.layout, constants, plan.x, Tensor(), plan.result.y);
}

BatchNorm batch_norm_apply_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                                const Tensor& running_var, const Tensor& moments, int64_t count, double momentum,
                                double eps) {
  const BatchNormPlan plan = prepare_batch_norm(x, weight, bias, running_mean, running_var);
  check_batch_norm_pairs(moments, x, "moments");
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    apply<T>(plan, weight, bias, running_mean, running_var, moments, count, momentum, eps);
  });
  return plan.result;
}

BatchNorm batch_norm_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                          const Tensor& running_var, bool training, double momentum, double eps) {
  const BatchNormPlan plan = prepare_batch_norm(x, weight, bias, running_mean, running_var);
  check_batch_norm_mode(plan, running_mean, running_var, training);
  if (training && plan.layout.count() == 0) return batch_norm_of_nothing(plan);
  const Tensor moments = training ? batch_norm_moments_cuda(plan.x) : Tensor();
  visit_floating(x.dtype(), "batch_norm", [&]<class T>() {
    apply<T>(plan, weight, bias, running_mean, running_var, moments, plan.layout.count(), momentum, eps);
  });
  return plan.result;
}

Tensor batch_norm_gradient_sums_cuda(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, Tensor(), mean, invstd);
  return visit_floating(x.dtype(), "batch_norm backward",
                        [&]<class T>() { return gradient_sums<T>(plan, mean, invstd); });
}

// The gradient of x, and those of weight and bias if they have output tensors.
template <class T>
Tensor input_gradient(const BatchNormGradientPlan& plan, const Tensor& weight, const Tensor& mean, const Tensor& invstd,
                      const Tensor& sums, int64_t count, bool fixed, const Tensor& weight_grad,
                      const Tensor& bias_grad) {
  using C = compute_type<T>;
  const int64_t channels = plan.layout.channels;
  const Tensor constants = empty({InputGradient<C>::kConstants, channels}, {dtype_of<C>, plan.x.device()});
  cuda::launch({"batch_norm_gradient_constants", cuda::blocks_for(channels, kThreads), kThreads}, plan.x.device(),
               &gradient_constants_kernel<C>, channels, static_cast<const double*>(sums.raw_data()),
               static_cast<double>(count), fixed, ChannelValues(weight, 1), ChannelValues(mean),
               ChannelValues(invstd, 1), static_cast<C*>(constants.raw_data()), ChannelValues(weight_grad),
               ChannelValues(bias_grad));
  const Tensor result = empty(plan.x.sizes(), plan.x.options());
  map_channels<InputGradient<C>, T>("batch_norm_input_gradient", plan.layout, constants, plan.x, plan.grad, result);
  return result;
}

Tensor batch_norm_input_gradient_cuda(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                      const Tensor& invstd, const Tensor& sums, int64_t count) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, weight, mean, invstd);
  check_batch_norm_pairs(sums, x, "sums of gradients");
  return visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    return input_gradient<T>(plan, weight, mean, invstd, sums, count, false, Tensor(), Tensor());
  });
}

BatchNormGrads batch_norm_backward_cuda(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                        const Tensor& invstd, bool training) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, weight, mean, invstd);
  if (plan.layout.count() == 0) return batch_norm_gradients_of_nothing(plan);
  const TensorOptions options{plan.parameter_dtype, x.device()};
  BatchNormGrads result{Tensor(), empty({plan.layout.channels}, options), empty({plan.layout.channels}, options)};
  visit_floating(x.dtype(), "batch_norm backward", [&]<class T>() {
    const Tensor sums = gradient_sums<T>(plan, mean, invstd);
    result.x =
        input_gradient<T>(plan, weight, mean, invstd, sums, plan.layout.count(), !training, result.weight, result.bias);
  });
  return result;
}

const AddKernel add_batch_norm(batch_norm, kCUDA, &batch_norm_cuda);
const AddKernel add_batch_norm_backward(batch_norm_backward, kCUDA, &batch_norm_backward_cuda);
const AddKernel add_batch_norm_moments(batch_norm_moments, kCUDA, &batch_norm_moments_cuda);
const AddKernel add_batch_norm_combine(batch_norm_combine, kCUDA, &batch_norm_combine_cuda);
const AddKernel add_batch_norm_apply(batch_norm_apply, kCUDA, &batch_norm_apply_cuda);
const AddKernel add_batch_norm_gradient_sums(batch_norm_gradient_sums, kCUDA, &batch_norm_gradient_sums_cuda);
const AddKernel add_batch_norm_input_gradient(batch_norm_input_gradient, kCUDA, &batch_norm_input_gradient_cuda);

}  // namespace
}  // namespace brigade::kernels
