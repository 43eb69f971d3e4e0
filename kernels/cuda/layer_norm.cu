// CUDA kernels of layer norm and RMS norm. Forward and the gradient of x use a warp or a block per row (detail/rows.h):
// first the mean, then the variance around it. For gradients of parameters, a block sums a piece of the rows for some
// columns, each of its groups every kGroups-th row; the pieces are then summed in order. RMS norm is layer norm with a
// mean of 0.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cuda/detail/rows.h>

#include <algorithm>
#include <cmath>

namespace brigade::kernels {
namespace {

constexpr int kGroups = 8;               // of rows, per block of columns
constexpr int64_t kRowsPerGroup = 8;     // minimum in a piece
constexpr int64_t kColumnBlocks = 1024;  // enough for any device

// Loads elements of a parameter in the compute type; `otherwise` if there is no parameter.
template <int length, class C, class W>
__device__ void load_parameter(const W* from, int64_t at, C otherwise, C (&values)[length]) {
  constexpr int kPart = std::min(length, cuda::kVectorBytes / static_cast<int>(sizeof(W)));
#pragma unroll
  for (int part = 0; part < length; part += kPart) {
    if (from) {
      const auto vector = cuda::load_vector<W, kPart>(from + at + part);
#pragma unroll
      for (int k = 0; k < kPart; ++k)
        values[part + k] = static_cast<C>(vector.values[k]);
    } else {
#pragma unroll
      for (int k = 0; k < kPart; ++k)
        values[part + k] = otherwise;
    }
  }
}

template <class Variant, bool centered, class T, class W>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    layer_norm_kernel(int64_t rows, int64_t n, double eps, const T* x, const W* weight, const W* bias, T* y,
                      compute_type<T>* means, compute_type<T>* rstds) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;  // a whole warp, for short rows
  const cuda::Row<Variant, T> values(x + row * n, n);
  C mean = C(0);
  if constexpr (centered) {
    // Uses distances to the first element, so that no digits are lost if a row is far from zero.
    const C first = static_cast<C>(x[row * n]);
    C sum = C(0);
    Variant::for_vectors(n, [&](int slot, int64_t at) {
      const auto vector = values.get(slot, at);
#pragma unroll
      for (int k = 0; k < kLength; ++k)
        sum += static_cast<C>(vector.values[k]) - first;
    });
    mean = first + Variant::reduce(sum, cuda::SumOf{}) / static_cast<C>(n);
  }
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
    if constexpr (centered) means[row] = mean;
    rstds[row] = rstd;
  }
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto vector = values.get(slot, at);
    C gain[kLength], shift[kLength];
    load_parameter(weight, at, C(1), gain);
    load_parameter(bias, at, C(0), shift);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k)
      result.values[k] = static_cast<T>((static_cast<C>(vector.values[k]) - mean) * rstd * gain[k] + shift[k]);
    cuda::store_vector<T, kLength>(y + row * n + at, result);
  });
}

// Sums over a row of s = grad * weight and of s * h, where h is the normalized x.
template <class C>
struct RowSums {
  C slope, dot;
};
struct AddRowSums {
  template <class C>
  __device__ RowSums<C> operator()(const RowSums<C>& a, const RowSums<C>& b) const {
    return {a.slope + b.slope, a.dot + b.dot};
  }
};
template <class C>
__device__ RowSums<C> shuffle_xor(const RowSums<C>& value, int lane_mask) {
  return {cuda::shuffle_xor(value.slope, lane_mask), cuda::shuffle_xor(value.dot, lane_mask)};
}

// out = rstd * (s - mean(s) - h * mean(s * h)); without mean(s) for RMS norm.
template <class Variant, bool centered, class T, class W>
__global__ void __launch_bounds__(cuda::kRowThreads, 2)
    layer_norm_input_gradient_kernel(int64_t rows, int64_t n, const T* grad, const T* x, const W* weight,
                                     const compute_type<T>* means, const compute_type<T>* rstds, T* out) {
  using C = compute_type<T>;
  constexpr int kLength = Variant::kLength;
  const int64_t row = Variant::row();
  if (row >= rows) return;
  const cuda::Row<Variant, T> slopes(grad + row * n, n);
  const cuda::Row<Variant, T> values(x + row * n, n);
  const C mean = centered ? means[row] : C(0);
  const C rstd = rstds[row];
  RowSums<C> sums{C(0), C(0)};
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto g = slopes.get(slot, at);
    const auto v = values.get(slot, at);
    C gain[kLength];
    load_parameter(weight, at, C(1), gain);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C s = static_cast<C>(g.values[k]) * gain[k];
      sums.slope += s;
      sums.dot += s * ((static_cast<C>(v.values[k]) - mean) * rstd);
    }
  });
  sums = Variant::reduce(sums, AddRowSums{});
  const C mean_slope = centered ? sums.slope / static_cast<C>(n) : C(0);
  const C mean_dot = sums.dot / static_cast<C>(n);
  Variant::for_vectors(n, [&](int slot, int64_t at) {
    const auto g = slopes.get(slot, at);
    const auto v = values.get(slot, at);
    C gain[kLength];
    load_parameter(weight, at, C(1), gain);
    cuda::Vector<T, kLength> result;
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      const C normed = (static_cast<C>(v.values[k]) - mean) * rstd;
      result.values[k] =
          static_cast<T>(rstd * (static_cast<C>(g.values[k]) * gain[k] - mean_slope - normed * mean_dot));
    }
    cuda::store_vector<T, kLength>(out + row * n + at, result);
  });
}

// Adds the sums of a block's groups and writes them to `out`; each thread holds `length` adjacent columns.
template <int length, class C>
__device__ void finish_columns(int64_t column, int64_t n, const C (&sums)[length], C* out) {
  BRIGADE_SHARED(C, groups, [kGroups][length][cuda::kWarp]);
  for (int k = 0; k < length; ++k)
    groups[threadIdx.y][k][threadIdx.x] = sums[k];
  __syncthreads();
  // Each group finishes some of the columns.
  for (int k = static_cast<int>(threadIdx.y); k < length && column + k < n; k += kGroups) {
    C sum = groups[0][k][threadIdx.x];
    for (int g = 1; g < kGroups; ++g)
      sum += groups[g][k][threadIdx.x];
    out[column + k] = sum;
  }
  __syncthreads();
}

// Partial gradients of weight (grad * h) and bias (grad), to row blockIdx.y of each. Both may be null.
template <int length, bool centered, class T>
__global__ void __launch_bounds__(cuda::kWarp* kGroups)
    parameter_gradient_kernel(int64_t rows, int64_t n, int64_t piece, const T* grad, const T* x,
                              const compute_type<T>* means, const compute_type<T>* rstds, compute_type<T>* weight_parts,
                              compute_type<T>* bias_parts) {
  using C = compute_type<T>;
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * cuda::kWarp + threadIdx.x) * length;
  const int64_t end = ::min(rows, (blockIdx.y + 1) * piece);
  C dots[length] = {};
  C slopes[length] = {};
  if (column < n) {
#pragma unroll 4
    for (int64_t row = blockIdx.y * piece + threadIdx.y; row < end; row += kGroups) {
      const auto g = cuda::load_vector<T, length>(grad + row * n + column);
      const auto v = cuda::load_vector<T, length>(x + row * n + column);
      const C mean = centered ? means[row] : C(0);
      const C rstd = rstds[row];
#pragma unroll
      for (int k = 0; k < length; ++k) {
        const C slope = static_cast<C>(g.values[k]);
        dots[k] += slope * ((static_cast<C>(v.values[k]) - mean) * rstd);
        slopes[k] += slope;
      }
    }
  }
  if (weight_parts) finish_columns(column, n, dots, weight_parts + blockIdx.y * n);
  if (bias_parts) finish_columns(column, n, slopes, bias_parts + blockIdx.y * n);
}

// --- on the host

template <bool centered>
LayerNormPlan forward(const char* what, const Tensor& x, const Shape& normalized_shape, const Tensor& weight,
                      const Tensor& bias, double eps) {
  const LayerNormPlan plan = prepare_layer_norm(what, x, normalized_shape, weight, bias, centered);
  const bool aligned = cuda::start_aligned({&plan.x, &plan.y, &plan.weight, &plan.bias});
  visit_layer_norm(what, x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    using C = compute_type<T>;
    cuda::with_row_variant<T, 8>(plan.length, aligned, [&]<class Variant>(Variant) {
      cuda::launch(cuda::row_launch<Variant>(what, plan.rows), x.device(), &layer_norm_kernel<Variant, centered, T, W>,
                   plan.rows, plan.length, eps, data_or_null<const T>(plan.x), data_or_null<const W>(plan.weight),
                   data_or_null<const W>(plan.bias), data_or_null<T>(plan.y), data_or_null<C>(plan.mean),
                   data_or_null<C>(plan.rstd));
    });
  });
  return plan;
}

template <bool centered, class T, class W>
void input_gradient(const char* what, const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd) {
  using C = compute_type<T>;
  const bool aligned = cuda::start_aligned({&plan.x, &plan.grad, &plan.weight, &plan.result});
  cuda::with_row_variant<T, 4>(plan.length, aligned, [&]<class Variant>(Variant) {
    cuda::launch(cuda::row_launch<Variant>(what, plan.rows), plan.x.device(),
                 &layer_norm_input_gradient_kernel<Variant, centered, T, W>, plan.rows, plan.length,
                 data_or_null<const T>(plan.grad), data_or_null<const T>(plan.x), data_or_null<const W>(plan.weight),
                 data_or_null<const C>(mean), data_or_null<const C>(rstd), data_or_null<T>(plan.result));
  });
}

template <bool centered, class T>
void parameter_gradients(const char* what, const LayerNormGradientPlan& plan, const Tensor& mean, const Tensor& rstd,
                         const LayerNormBackwardOptions& options, LayerNormGrads& result) {
  using C = compute_type<T>;
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  const bool vectors = plan.length % kLength == 0 && cuda::start_aligned({&plan.x, &plan.grad});
  const unsigned columns = cuda::blocks_for(plan.length, cuda::kWarp * (vectors ? kLength : 1));
  const int64_t most = std::max<int64_t>(1, kColumnBlocks / columns);
  const int64_t wanted = std::clamp<int64_t>(plan.rows / (kGroups * kRowsPerGroup), 1, most);
  const int64_t piece = std::max<int64_t>(1, (plan.rows + wanted - 1) / wanted);
  const int64_t pieces = std::max<int64_t>(1, (plan.rows + piece - 1) / piece);
  const auto room = [&](const ParameterGrad& to) {
    return to.wanted ? empty({pieces, plan.length}, {dtype_of<C>, plan.x.device()}) : Tensor();
  };
  const Tensor weight_parts = room(options.weight);
  const Tensor bias_parts = room(options.bias);
  cuda::launch({what, dim3(columns, static_cast<unsigned>(pieces)), dim3(cuda::kWarp, kGroups)}, plan.x.device(),
               vectors ? &parameter_gradient_kernel<kLength, centered, T> : &parameter_gradient_kernel<1, centered, T>,
               plan.rows, plan.length, piece, data_or_null<const T>(plan.grad), data_or_null<const T>(plan.x),
               data_or_null<const C>(mean), data_or_null<const C>(rstd), data_or_null<C>(weight_parts),
               data_or_null<C>(bias_parts));
  result.weight = sum_parts(weight_parts, options.weight, options.normalized_shape);
  result.bias = sum_parts(bias_parts, options.bias, options.normalized_shape);
}

template <bool centered>
LayerNormGrads backward(const char* what, const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                        const Tensor& rstd, const LayerNormBackwardOptions& options) {
  const LayerNormGradientPlan plan = prepare_layer_norm_gradient(what, grad, x, weight, mean, rstd, options, centered);
  LayerNormGrads result{plan.result, {}, {}};
  visit_layer_norm(what, x.dtype(), plan.parameter_dtype, [&]<class T, class W>() {
    if (options.input) input_gradient<centered, T, W>(what, plan, mean, rstd);
    if (options.weight.wanted || options.bias.wanted)
      parameter_gradients<centered, T>(what, plan, mean, rstd, options, result);
  });
  return result;
}

LayerNorm layer_norm_cuda(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, const Tensor& bias,
                          double eps) {
  const LayerNormPlan plan = forward<true>("layer_norm", x, normalized_shape, weight, bias, eps);
  return {plan.y, plan.mean, plan.rstd};
}
RmsNorm rms_norm_cuda(const Tensor& x, const Shape& normalized_shape, const Tensor& weight, double eps) {
  const LayerNormPlan plan = forward<false>("rms_norm", x, normalized_shape, weight, Tensor(), eps);
  return {plan.y, plan.rstd};
}
LayerNormGrads layer_norm_backward_cuda(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                        const Tensor& rstd, const LayerNormBackwardOptions& options) {
  return backward<true>("layer_norm backward", grad, x, weight, mean, rstd, options);
}
LayerNormGrads rms_norm_backward_cuda(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& rstd,
                                      const LayerNormBackwardOptions& options) {
  return backward<false>("rms_norm backward", grad, x, weight, Tensor(), rstd, options);
}

const AddKernel add_layer_norm(layer_norm, kCUDA, &layer_norm_cuda);
const AddKernel add_rms_norm(rms_norm, kCUDA, &rms_norm_cuda);
const AddKernel add_layer_norm_backward(layer_norm_backward, kCUDA, &layer_norm_backward_cuda);
const AddKernel add_rms_norm_backward(rms_norm_backward, kCUDA, &rms_norm_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
