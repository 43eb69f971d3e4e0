// Matrix products, and orthonormal columns of a matrix.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// --- Matrix products. On the CPU, products with one row or one column use native loops that read the matrix once and
// add up blocks in double (cpu/vector/products.h). Other float32 products use oneDNN's sgemm where present;
// small products, float64, and builds without oneDNN use native code. Half types are computed in float32. CUDA devices
// use cuBLASLt, with float accumulation for half types; TF32 only where brigade::cuda::set_allow_tf32 allows it.
// Integers (not bool) are multiplied on the CPU only, as in PyTorch, and wrap around.

// op(a) x op(b) on the last two dimensions, where op transposes on request; leading dimensions broadcast. Both are at
// least 2-d, of one dtype. When `out` is defined (contiguous, right shape and dtype) the result is written there (added
// to `out` if `accumulate`), and `out` is returned: this writes a gradient directly into its bucket. Throws ShapeError,
// DTypeError, DeviceError.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
  Tensor out = {};
  bool accumulate = false;
};
extern Kernel<Tensor(const Tensor& a, const Tensor& b, const MatmulOptions& options)> matmul;

// x [rows, in] x weight^T [in, out] + bias [out] (may be undefined); leading dimensions of x are
// kept. Throws as matmul.
extern Kernel<Tensor(const Tensor& x, const Tensor& weight, const Tensor& bias)> linear;

// The activation applied to linear's result in the same pass: ReLU, or GELU with the tanh approximation
// (kernels/activation.h).
enum class FusedActivation : uint8_t { Relu, GeluTanh };
struct LinearActivation {
  Tensor y;
  Tensor pre;  // the input of GeluTanh, for its derivative; undefined unless requested, and for Relu
};
// linear, then the activation. On CUDA devices cuBLASLt does both in one pass where its rules allow that
// (cuda/detail/gemm.h), which saves a trip through memory. There the activation is applied to the sum before it is
// rounded to a half type, and the library decides whether Relu propagates a NaN or makes it 0. Throws as matmul.
extern Kernel<LinearActivation(const Tensor& x, const Tensor& weight, const Tensor& bias, FusedActivation activation,
                               bool keep_pre)>
    linear_activation;

// --- Orthonormalizes the columns of a matrix.

// Makes the columns of `matrix` (n x r, floating, contiguous) orthonormal, in place and from left to right. A column
// that vanishes (such as one that depends on those before it) is replaced by that column of `fresh` (same sizes, dtype
// and device, contiguous; may be undefined), orthonormalized as well, or by zeros where that vanishes too. Modified
// Gram-Schmidt, twice for each column (Giraud et al., Numerische Mathematik 101, 2005); sums in float64. No host
// synchronization. Throws ShapeError and DTypeError.
extern Kernel<void(const Tensor& matrix, const Tensor& fresh)> orthogonalize;

}  // namespace brigade::kernels
