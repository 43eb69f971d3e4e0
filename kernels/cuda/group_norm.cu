// CUDA kernels of group norm. A row is a group of a sample, processed by a warp or a block (detail/rows.h): first the
// mean, then the variance around it. Backward: two sums per plane (a channel of a sample), by a warp or a block each;
// then each row adds the sums of its channels and goes over its elements once more. The gradients of the parameters are
// sums of the planes' over the samples.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cuda/detail/rows.h>

#include <cmath>

namespace brigade::kernels {
namespace {

template <class C, class W>
__device__ C parameter(const W* from, int64_t channel, C otherwise) {
  return from ? static_cast<C>(from[channel]) : otherwise;
}

template <class Variant, class T, class W>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    group_norm_kernel(GroupNormLayout layout, double eps, const T* x, const W* weight, const W* bias, T* y,
                      compute_type<T>* means, compute_type<T>* rstds) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  const int64_t n = layout.length();
  if (row >= layout.rows()) return;  // a whole warp, for short rows
  const cuda::Row<Variant, T> values(x + row * n, n);
  // Uses distances to the first element, so that no digits are lost if a group is far from zero.
  const C start = static_cast<C>(x[row * n]);
  C sum = C(0);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = values.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      sum += static_cast<C>(vector.values[k]) - start;
  });
  const C mean = start + Variant::reduce(sum, cuda::SumOf{}) / static_cast<C>(n);
  C squares = C(0);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = values.get(slot, at);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C distance = static_cast<C>(vector.values[k]) - mean;
      squares += distance * distance;
    }
  });
  squares = Variant::reduce(squares, cuda::SumOf{});
  const C rstd = C(1) / std::sqrt(squares / static_cast<C>(n) + static_cast<C>(eps));
  if (threadIdx.x == 0) {
    means[row] = mean;
    rstds[row] = rstd;
  }
  const int64_t first = row % layout.groups * layout.channels;
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = values.get(slot, at);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const int64_t channel = first + (at + k) / layout.area;
      const C normed = (static_cast<C>(vector.values[k]) - mean) * rstd;
      result.values[k] = static_cast<T>(normed * parameter(weight, channel, C(1)) + parameter(bias, channel, C(0)));
    }
    cuda::store_vector<T, kLength>(y + row * n + at, result);
  });
}

// Two sums computed together.
template <class C>
struct TwoSums {
  C slope, dot;
};
struct AddTwoSums {
  template <class C>
  __device__ TwoSums<C> operator()(const TwoSums<C>& a, const TwoSums<C>& b) const {
    return {a.slope + b.slope, a.dot + b.dot};
  }
};
template <class C>
__device__ TwoSums<C> shuffle_xor(const TwoSums<C>& value, int lane_mask) {
  return {cuda::shuffle_xor(value.slope, lane_mask), cuda::shuffle_xor(value.dot, lane_mask)};
}

// Per plane: the sums of grad * h and of grad, where h is the normalized x.
template <class Variant, class T>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    group_norm_plane_sums_kernel(GroupNormLayout layout, const T* grad, const T* x, const compute_type<T>* means,
                                 const compute_type<T>* rstds, compute_type<T>* dots, compute_type<T>* slopes) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t plane = Variant::row();
  const int64_t n = layout.area;
  if (plane >= layout.rows() * layout.channels) return;
  const C mean = means[plane / layout.channels];
  const C rstd = rstds[plane / layout.channels];
  TwoSums<C> sums{C(0), C(0)};
  Variant::for_vectors(n, [&](int, int64_t at) {
    const auto g = cuda::load_vector<T, kLength>(grad + plane * n + at);
    const auto v = cuda::load_vector<T, kLength>(x + plane * n + at);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C slope = static_cast<C>(g.values[k]);
      sums.slope += slope;
      sums.dot += slope * ((static_cast<C>(v.values[k]) - mean) * rstd);
    }
  });
  sums = Variant::reduce(sums, AddTwoSums{});
  if (threadIdx.x != 0) return;
  dots[plane] = sums.dot;
  slopes[plane] = sums.slope;
}

// out = rstd * (s - mean(s) - h * mean(s * h)) with s = grad * weight; means over the row.
template <class Variant, class T, class W>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    group_norm_input_gradient_kernel(GroupNormLayout layout, const T* grad, const T* x, const W* weight,
                                     const compute_type<T>* means, const compute_type<T>* rstds,
                                     const compute_type<T>* dots, const compute_type<T>* slopes, T* out) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  const int64_t n = layout.length();
  if (row >= layout.rows()) return;
  const int64_t first = row % layout.groups * layout.channels;
  TwoSums<C> sums{C(0), C(0)};
  for (int64_t c = threadIdx.x; c < layout.channels; c += Variant::kStep) {
    const C gain = parameter(weight, first + c, C(1));
    sums.slope += gain * slopes[row * layout.channels + c];
    sums.dot += gain * dots[row * layout.channels + c];
  }
  sums = Variant::reduce(sums, AddTwoSums{});
  const C mean = means[row];
  const C rstd = rstds[row];
  const C mean_slope = sums.slope / static_cast<C>(n);
  const C mean_dot = sums.dot / static_cast<C>(n);
  Variant::for_vectors(n, [&](int, int64_t at) {
    const auto g = cuda::load_vector<T, kLength>(grad + row * n + at);
    const auto v = cuda::load_vector<T, kLength>(x + row * n + at);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C gain = parameter(weight, first + (at + k) / layout.area, C(1));
      const C normed = (static_cast<C>(v.values[k]) - mean) * rstd;
      result.values[k] = static_cast<T>(rstd * (static_cast<C>(g.values[k]) * gain - mean_slope - normed * mean_dot));
    }
    cuda::store_vector<T, kLength>(out + row * n + at, result);
  });
}

// --- on the host

// Keeps no row in registers, since these kernels read a row only once.
template <class T, class Run>
void with_streaming_variant(int64_t n, bool aligned, Run run) {
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  constexpr int64_t kShort = 8 * cuda::kWarp;  // vectors few enough for a warp
  if (aligned && n % kLength == 0) {
    if (n <= kShort * kLength) return run(cuda::RowVariant<true, kLength, 0>{});
    return run(cuda::RowVariant<false, kLength, 0>{});
  }
  if (n <= kShort) return run(cuda::RowVariant<true, 1, 0>{});
  run(cuda::RowVariant<false, 1, 0>{});
}

GroupNorm group_norm_cuda(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  const GroupNormPlan plan = prepare_group_norm(x, groups, weight, bias);
  const GroupNorm& result = plan.result;
  const bool aligned = cuda::start_aligned({&plan.x, &result.y});
  visit_layer_norm("group_norm", x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    using C = compute_type<T>;
    cuda::with_row_variant<T, 8>(plan.layout.length(), aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>("group_norm", plan.layout.rows()), x.device(),
                   &group_norm_kernel<Variant, T, W>, plan.layout, eps, data_or_null<const T>(plan.x),
                   data_or_null<const W>(plan.weight), data_or_null<const W>(plan.bias), data_or_null<T>(result.y),
                   data_or_null<C>(result.mean), data_or_null<C>(result.rstd));
    });
  });
  return result;
}

GroupNormGrads group_norm_backward_cuda(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                        const Tensor& rstd, const GroupNormBackwardOptions& options) {
  const char* const what = "group_norm backward";
  const GroupNormGradientPlan plan = prepare_group_norm_gradient(grad, x, weight, mean, rstd, options);
  const GroupNormLayout& layout = plan.layout;
  const Device device = x.device();
  GroupNormGrads result{plan.result, {}, {}};
  visit_layer_norm(what, x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    using C = compute_type<T>;
    const T* const slope = data_or_null<const T>(plan.grad);
    const T* const in = data_or_null<const T>(plan.x);
    const C* const means = data_or_null<const C>(mean);
    const C* const rstds = data_or_null<const C>(rstd);
    const Shape planes{layout.batch, layout.groups * layout.channels};
    const Tensor dots = empty(planes, {dtype_of<C>, device});
    const Tensor slopes = empty(planes, {dtype_of<C>, device});
    const bool aligned = cuda::start_aligned({&plan.x, &plan.grad, &plan.result});
    with_streaming_variant<T>(layout.area, aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>(what, planes.numel()), device, &group_norm_plane_sums_kernel<Variant, T>,
                   layout, slope, in, means, rstds, data_or_null<C>(dots), data_or_null<C>(slopes));
    });
    if (options.input) {
      with_streaming_variant<T>(layout.length(), aligned, [&]<class Variant>(Variant) {
        cuda::launch(cuda::row_launch<Variant>(what, layout.rows()), device,
                     &group_norm_input_gradient_kernel<Variant, T, W>, layout, slope, in,
                     data_or_null<const W>(plan.weight), means, rstds, data_or_null<const C>(dots),
                     data_or_null<const C>(slopes), data_or_null<T>(plan.result));
      });
    }
    result.weight = sum_parts(dots, options.weight, {planes[1]});
    result.bias = sum_parts(slopes, options.bias, {planes[1]});
  });
  return result;
}

const AddKernel add_group_norm(group_norm, kCUDA, &group_norm_cuda);
const AddKernel add_group_norm_backward(group_norm_backward, kCUDA, &group_norm_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
