// Matrix products on the CPU: threads share a batch; half types use oneDNN or go through float32.
#include <brigade/kernels/matmul.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/matmul.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <type_traits>

namespace brigade::kernels {
namespace {

// Integer products, in unsigned arithmetic, which wraps around.
template <class T>
void product(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
             T beta, T* c, int64_t ldc) {
  if constexpr (std::is_floating_point_v<T>) {
    cpu::gemm(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
  } else {
    for (int64_t i = 0; i < m; ++i) {
      T* const row = c + i * ldc;
      if (beta == T(0)) std::fill(row, row + n, T(0));
      for (int64_t l = 0; l < k; ++l) {
        const auto factor = static_cast<uint64_t>(ta ? a[l * lda + i] : a[i * lda + l]);
        for (int64_t j = 0; j < n; ++j) {
          const auto other = static_cast<uint64_t>(tb ? b[j * ldb + l] : b[l * ldb + j]);
          row[j] = static_cast<T>(static_cast<uint64_t>(row[j]) + factor * other);
        }
      }
    }
  }
}

template <class T>
void multiply(const MatrixOperand& a, const MatrixOperand& b, const MatmulPlan& plan) {
  const T* x = static_cast<const T*>(a.tensor().raw_data());
  const T* y = static_cast<const T*>(b.tensor().raw_data());
  T* z = static_cast<T*>(plan.out.raw_data());
  const int64_t m = plan.m;
  const int64_t n = plan.n;
  const int64_t k = plan.k;
  const T beta = plan.accumulate ? T(1) : T(0);
  const Shape& sizes = plan.out.sizes();
  const int batch_dims = sizes.size() - 2;
  const int64_t batches = batch_dims == 0 ? 1 : plan.out.numel() / (m * n);
  const auto offset_of = [&](const Tensor& operand, int64_t batch) {
    int64_t offset = 0;
    const int added = batch_dims - (operand.dim() - 2);
    for (int d = batch_dims - 1; d >= 0; --d) {
      const int64_t index = batch % sizes[d];
      batch /= sizes[d];
      if (d >= added && operand.sizes()[d - added] != 1) offset += index * operand.strides()[d - added];
    }
    return offset;
  };
  const auto one = [&](int64_t batch) {
    product(a.transposed, b.transposed, m, n, k, x + offset_of(a.tensor(), batch), a.row_length,
            y + offset_of(b.tensor(), batch), b.row_length, beta, z + batch * m * n, n);
  };
  if (batches == 1) {
    one(0);
    return;
  }
  // Many small products are distributed over the threads; a product inside a parallel region runs on one thread.
  cpu::parallel_for(
      batches,
      [&](int64_t begin, int64_t end) {
        for (int64_t batch = begin; batch < end; ++batch)
          one(batch);
      },
      m * n * k / 16);
}

Tensor matmul_cpu(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  MatmulPlan plan = prepare_matmul(a, b, options);
  if (plan.done) return std::move(plan.out);
  if (is_half(a.dtype())) {
    if (cpu::onednn_matmul(a, b, options, plan)) return std::move(plan.out);
    MatmulOptions in_float{.transpose_a = options.transpose_a, .transpose_b = options.transpose_b};
    in_float.accumulate = plan.accumulate;
    if (plan.accumulate) in_float.out = cast(plan.out, kFloat32);
    copy(plan.out, matmul_cpu(cast(a, kFloat32), cast(b, kFloat32), in_float));
    return std::move(plan.out);
  }
  const MatrixOperand x = prepare_operand(a, options.transpose_a);
  const MatrixOperand y = prepare_operand(b, options.transpose_b);
  switch (a.dtype()) {
    case kFloat32: multiply<float>(x, y, plan); break;
    case kFloat64: multiply<double>(x, y, plan); break;
    case kInt64: multiply<int64_t>(x, y, plan); break;
    case kInt32: multiply<int32_t>(x, y, plan); break;
    default: multiply<uint8_t>(x, y, plan); break;
  }
  return std::move(plan.out);
}

Tensor linear_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const LinearPlan plan = prepare_linear(x, weight, bias);
  MatmulOptions options{.transpose_b = true};
  if (bias.defined()) {
    // The product is accumulated onto the bias: no second pass over the result.
    options.out = empty({plan.rows.sizes()[0], weight.sizes()[0]}, x.options());
    copy(options.out, bias);
    options.accumulate = true;
  }
  const Tensor result = matmul_cpu(plan.rows, weight, options);
  return view::as_strided(result, plan.sizes, contiguous_strides(plan.sizes), 0);
}

LinearActivation linear_activation_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                       FusedActivation activation, bool keep_pre) {
  return activate(linear_cpu(x, weight, bias), activation, keep_pre);
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const MatmulOptions&)> matmul("matmul", &matmul_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&)> linear("linear", &linear_cpu);
constinit Kernel<LinearActivation(const Tensor&, const Tensor&, const Tensor&, FusedActivation, bool)>
    linear_activation("linear_activation", &linear_activation_cpu);

}  // namespace brigade::kernels
