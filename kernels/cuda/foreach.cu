// CUDA kernels of the operations on many gradients: one block per piece of a tensor (detail/multi_tensor.h).
// Noncontiguous tensors are copied to dense ones and back.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/cuda/detail/multi_measure.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>
#include <vector>

namespace brigade::kernels {
namespace {

// A factor that may be in device memory: `number` times *single or *wide, if either is set.
struct Factor {
  double number = 1;
  const float* single = nullptr;
  const double* wide = nullptr;

  explicit Factor(double n, const Tensor& by) : number(n) {
    if (!by.defined()) return;
    if (by.dtype() == kFloat32) {
      single = static_cast<const float*>(by.raw_data());
    } else {
      wide = static_cast<const double*>(by.raw_data());
    }
  }
  __device__ double operator()() const {
    return single ? number * static_cast<double>(*single) : wide ? number * *wide : number;
  }
};

// Sets `found_inf` to 1 if an element is not finite before scaling; without `looks`, leaves it unchanged.
template <bool looks, class T>
__global__ void __launch_bounds__(cuda::kMultiThreads)
    scale_kernel(cuda::MultiTable<1> table, Factor factor, float* found_inf) {
  using C = compute_type<T>;
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  const cuda::Piece piece = table.piece();
  T* row = table.template at<T>(0, piece.row);
  const bool vectors = cuda::is_aligned(row, kLength);
  const C scale = static_cast<C>(factor());
  bool found = false;
  cuda::for_vectors<kLength, cuda::kMultiUnroll>(piece, [&](auto count, int64_t at) {
    cuda::Vector<T, kLength> x[count.value];
#pragma unroll
    for (int u = 0; u < count.value; ++u)
      x[u] = cuda::load_padded<kLength>(row, at + u * cuda::kMultiStep<kLength>, piece.end, vectors);
#pragma unroll
    for (int u = 0; u < count.value; ++u) {
#pragma unroll
      for (int k = 0; k < kLength; ++k) {
        const C value = static_cast<C>(x[u].values[k]);
        if constexpr (looks) found = found || !std::isfinite(value);
        x[u].values[k] = static_cast<T>(value * scale);
      }
      if (looks && scale == C(1)) continue;  // only the check is needed
      cuda::store_padded<kLength>(row, at + u * cuda::kMultiStep<kLength>, piece.end, vectors, x[u]);
    }
  });
  if constexpr (looks) {
    found = __syncthreads_or(found ? 1 : 0) != 0;
    if (found && threadIdx.x == 0) atomicExch(found_inf, 1.0F);
  }
}

template <class T>
__global__ void __launch_bounds__(cuda::kMultiThreads) clip_kernel(cuda::MultiTable<1> table, double bound) {
  using C = compute_type<T>;
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  const cuda::Piece piece = table.piece();
  T* row = table.template at<T>(0, piece.row);
  const bool vectors = cuda::is_aligned(row, kLength);
  const C high = static_cast<C>(static_cast<T>(static_cast<C>(bound)));
  cuda::for_vectors<kLength, cuda::kMultiUnroll>(piece, [&](auto count, int64_t at) {
    cuda::Vector<T, kLength> x[count.value];
#pragma unroll
    for (int u = 0; u < count.value; ++u)
      x[u] = cuda::load_padded<kLength>(row, at + u * cuda::kMultiStep<kLength>, piece.end, vectors);
#pragma unroll
    for (int u = 0; u < count.value; ++u) {
#pragma unroll
      for (int k = 0; k < kLength; ++k) {
        const C value = static_cast<C>(x[u].values[k]);
        x[u].values[k] = static_cast<T>(value > high ? high : value < -high ? -high : value);
      }
      cuda::store_padded<kLength>(row, at + u * cuda::kMultiStep<kLength>, piece.end, vectors, x[u]);
    }
  });
}

// The rows of contiguous versions of the tensors.
struct Rows {
  std::vector<Tensor> dense;
  std::vector<cuda::MultiRow<1>> rows;

  explicit Rows(std::span<const Tensor> tensors) {
    dense.reserve(tensors.size());
    rows.reserve(tensors.size());
    for (const Tensor& tensor : tensors) {
      dense.push_back(contiguous(tensor));
      rows.push_back({{dense.back().raw_data()}, tensor.numel()});
    }
  }
  void copy_back(std::span<const Tensor> tensors) const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].is_contiguous()) copy(tensors[i], dense[i]);
    }
  }
};

template <bool looks>
void scale(const char* name, std::span<const Tensor> tensors, const Factor& factor, float* found_inf) {
  const Rows all(tensors);
  visit_floating(tensors.front().dtype(), name, [&]<class T>() {
    cuda::for_tables<1>(std::span<const cuda::MultiRow<1>>(all.rows), [&](const cuda::MultiTable<1>& table) {
      cuda::launch({name, static_cast<unsigned>(table.pieces), cuda::kMultiThreads}, tensors.front().device(),
                   &scale_kernel<looks, T>, table, factor, found_inf);
    });
  });
  all.copy_back(tensors);
}

void foreach_scale_cuda(std::span<const Tensor> tensors, double factor, const Tensor& by) {
  check_scale(tensors, by);
  scale<false>("foreach_scale", tensors, Factor(factor, by), nullptr);
}

void foreach_unscale_cuda(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  check_unscale(grads, inv_scale, found_inf);
  scale<true>("foreach_unscale", grads, Factor(1, inv_scale), static_cast<float*>(found_inf.raw_data()));
}

void foreach_clip_cuda(std::span<const Tensor> tensors, double bound) {
  check_clip(tensors, bound);
  const Rows all(tensors);
  visit_floating(tensors.front().dtype(), "foreach_clip", [&]<class T>() {
    cuda::for_tables<1>(std::span<const cuda::MultiRow<1>>(all.rows), [&](const cuda::MultiTable<1>& table) {
      cuda::launch({"foreach_clip", static_cast<unsigned>(table.pieces), cuda::kMultiThreads}, tensors.front().device(),
                   &clip_kernel<T>, table, bound);
    });
  });
  all.copy_back(tensors);
}

struct SumOfAbs {
  __device__ static double term(double value, int64_t) { return std::fabs(value); }
  __device__ double operator()(double a, double b) const { return a + b; }
};
// The maximum absolute value; NaN propagates.
struct MaxAbs {
  __device__ static double term(double value, int64_t) { return std::fabs(value); }
  __device__ double operator()(double a, double b) const { return a != a || a > b ? a : b; }
};

void foreach_norm_cuda(std::span<const Tensor> tensors, NormTerm term, const Tensor& out) {
  check_norm(tensors, out);
  const Rows all(tensors);
  double* results = static_cast<double*>(out.raw_data());
  visit_floating(tensors.front().dtype(), "foreach_norm", [&]<class T>() {
    const auto measure = [&]<class Measure>() {
      cuda::measure_rows<T, Measure>("foreach_norm", out.device(), all.rows, results);
    };
    switch (term) {
      case NormTerm::SumOfSquares: measure.template operator()<cuda::SumOfSquares>(); break;
      case NormTerm::SumOfAbs: measure.template operator()<SumOfAbs>(); break;
      case NormTerm::MaxAbs: measure.template operator()<MaxAbs>(); break;
    }
  });
}

const AddKernel add_foreach_unscale(foreach_unscale, kCUDA, &foreach_unscale_cuda);
const AddKernel add_foreach_norm(foreach_norm, kCUDA, &foreach_norm_cuda);
const AddKernel add_foreach_clip(foreach_clip, kCUDA, &foreach_clip_cuda);
const AddKernel add_foreach_scale(foreach_scale, kCUDA, &foreach_scale_cuda);

}  // namespace
}  // namespace brigade::kernels
