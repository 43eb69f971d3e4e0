// Device-independent parts of the matrix products and of orthogonalize.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/dtype.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/matmul.h>

#include <cmath>
#include <type_traits>

namespace brigade::kernels {

// --- Matrix products: checks, sizes, allocation of results, and activations as a separate pass.

// A matrix (or a batch) in the form that BLAS libraries take: dense rows with a stride of `row_length` elements,
// possibly to be transposed.
struct MatrixOperand {
  const Tensor* given;
  Tensor copy;  // used instead of `given` if defined
  int64_t row_length;
  bool transposed;

  const Tensor& tensor() const noexcept { return copy.defined() ? copy : *given; }
};
// The operand for the last two dimensions of `x`, which must outlive it. Copies when no stride is 1.
MatrixOperand prepare_operand(const Tensor& x, bool transpose);

struct MatmulPlan {
  Tensor out;  // contiguous [batch..., m, n]
  int64_t m, n, k;
  bool accumulate;
  bool done;  // `out` is empty, or k is 0 and `out` already holds the result
};
// Throws DTypeError, DeviceError, ShapeError.
MatmulPlan prepare_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options);

struct LinearPlan {
  Tensor rows;  // x as [rows, in]
  Shape sizes;  // of the result
};
// Throws DTypeError, DeviceError, ShapeError.
LinearPlan prepare_linear(const Tensor& x, const Tensor& weight, const Tensor& bias);

// Computes linear_activation from the result of linear, with the activation's own kernel.
LinearActivation activate(Tensor pre, FusedActivation activation, bool keep_pre);

// --- Orthogonalize.

// Throws ShapeError and DTypeError.
void check_orthogonalize(const Tensor& matrix, const Tensor& fresh);

// The spacing of adjacent numbers near 1.
template <class T>
constexpr double spacing_at_one() {
  if constexpr (std::is_same_v<T, double>) return 0x1p-52;
  if constexpr (std::is_same_v<T, float>) return 0x1p-23;
  return std::is_same_v<T, float16> ? 0x1p-10 : 0x1p-7;
}

// Columns of a row-major matrix. Rows: `sum(f)` is the sum of f(i) over all rows, `each(f)` calls f(i) for each; each
// call sees the writes of the calls before it.
template <class T, class Rows>
struct Columns {
  T* data;
  const T* fresh;  // may be null
  int64_t r;
  Rows rows;

  BRIGADE_HOST_DEVICE double at(int64_t i, int64_t j) const {
    return static_cast<double>(static_cast<compute_type<T>>(data[i * r + j]));
  }
  BRIGADE_HOST_DEVICE void put(int64_t i, int64_t j, double value) const {
    data[i * r + j] = static_cast<T>(static_cast<compute_type<T>>(value));
  }

#ifdef __CUDACC__
#pragma nv_exec_check_disable  // `rows` is host-only or device-only
#endif
  BRIGADE_HOST_DEVICE double norm(int64_t j) const {
    return std::sqrt(rows.sum([&](int64_t i) { return at(i, j) * at(i, j); }));
  }

  // Orthonormalizes column j against the columns before it. Returns false, and sets it to zeros, if it vanishes.
#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
  BRIGADE_HOST_DEVICE bool settle(int64_t j) const {
    // After one pass, a dependent column holds only rounding errors. An independent one may not be quite orthogonal
    // yet: the second pass then removes hardly anything.
    constexpr double kNothing = 4 * spacing_at_one<T>();
    const double whole = norm(j);
    const double bounds[] = {whole * kNothing, 1e-3};
    for (const double least : bounds) {
      for (int64_t k = 0; k < j; ++k) {
        const double dot = rows.sum([&](int64_t i) { return at(i, j) * at(i, k); });
        rows.each([&](int64_t i) { put(i, j, at(i, j) - dot * at(i, k)); });
      }
      const double left = norm(j);
      const bool vanishes = !(left > least);
      rows.each([&](int64_t i) { put(i, j, vanishes ? 0 : at(i, j) / left); });
      if (vanishes) return false;
    }
    return true;
  }

#ifdef __CUDACC__
#pragma nv_exec_check_disable
#endif
  BRIGADE_HOST_DEVICE void orthogonalize() const {
    for (int64_t j = 0; j < r; ++j) {
      if (settle(j) || !fresh) continue;
      rows.each([&](int64_t i) { data[i * r + j] = fresh[i * r + j]; });
      settle(j);
    }
  }
};

}  // namespace brigade::kernels
