// Matrix products. Those with one row or one column by own loops that read the matrix once and add up
// blocks in double (cpu/vector/vector_products.h); the others of float32 through oneDNN's sgemm where
// it is present, in own code otherwise (small products, float64, and without oneDNN); half types are
// computed in float32. On CUDA devices by cuBLASLt, with float accumulation for half types; TF32 only
// where brigade::cuda::set_allow_tf32 allows it. Integers (not bool) are multiplied on the CPU only, as
// in PyTorch, and wrap around.
#pragma once

#include <brigade/kernels/kernel.h>

namespace brigade::kernels {

// op(a) x op(b) on the last two dimensions, op = transpose when asked; leading dimensions
// broadcast. Both at least 2-d, same dtype. When `out` is defined (contiguous, right shape and
// dtype) the result goes there, added to what
// it holds if `accumulate`, and `out` is returned: this is how a gradient is born in its bucket.
// Throws ShapeError, DTypeError, DeviceError.
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

// What is taken of linear's result in the same pass: ReLU, or GELU by the tanh approximation
// (kernels/activation.h).
enum class FusedActivation : uint8_t { Relu, GeluTanh };
struct LinearActivation {
  Tensor y;
  Tensor pre;  // what GeluTanh was taken of, for its derivative; undefined unless asked for, and for Relu
};
// linear, then the activation; on CUDA devices by cuBLASLt in the same pass where its rules allow
// that (cuda/detail/gemm.h), so that the result does not go through memory once more. There the
// activation is taken of the sum before it is rounded to a half type, and whether Relu hands on a
// NaN or makes it 0 is the library's choice. Throws as matmul.
extern Kernel<LinearActivation(const Tensor& x, const Tensor& weight, const Tensor& bias, FusedActivation activation,
                               bool keep_pre)>
    linear_activation;

}  // namespace brigade::kernels
