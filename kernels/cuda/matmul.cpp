// CUDA kernels of matmul.h: products of strided matrices, in as few gemm calls as the batch dimensions allow.
#include <brigade/core/cuda/device.h>
#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/matmul.h>
#include <brigade/kernels/common/strides.h>
#include <brigade/kernels/cuda/detail/gemm.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

using cuda::gemm;
using cuda::gemm_with_epilogue;
using cuda::GemmCall;
using cuda::GemmShape;

// Batches per call: kernels use a grid dimension of at most 65535 for the batch.
constexpr int64_t kMostBatches = 1 << 15;

const char* at(const Tensor& x, int64_t element) {
  return static_cast<const char*>(x.raw_data()) + element * static_cast<int64_t>(x.itemsize());
}

Shape without_matrix(const Shape& shape) {
  return Shape(std::span(shape.begin(), static_cast<size_t>(shape.size() - 2)));
}
// A view of the first element of each matrix.
Tensor batch_of(const Tensor& x) {
  return view::as_strided(x, without_matrix(x.sizes()), without_matrix(x.strides()), x.storage_offset());
}

// The shape of one product, without batches.
GemmShape shape_of(const MatmulPlan& plan, const MatrixOperand& a, const MatrixOperand& b) {
  return {.dtype = plan.out.dtype(),
          .tf32 = plan.out.dtype() == kFloat32 && brigade::cuda::allow_tf32(),
          .accumulate = plan.accumulate,
          .transpose_a = a.transposed,
          .transpose_b = b.transposed,
          .m = plan.m,
          .n = plan.n,
          .k = plan.k,
          .a_row = a.row_length,
          .b_row = b.row_length,
          .c_row = plan.n};
}

void multiply(const MatmulPlan& plan, const MatrixOperand& a, const MatrixOperand& b) {
  const Tensor a_batch = batch_of(a.tensor());
  const Tensor b_batch = batch_of(b.tensor());
  const StridedLayout<2> batch(without_matrix(plan.out.sizes()), {&a_batch, &b_batch});
  const int outer_dims = std::max(batch.sizes.size() - 1, 0);
  GemmShape shape = shape_of(plan, a, b);
  shape.c_batch = plan.m * plan.n;
  int64_t inner = 1;
  if (batch.sizes.size() > 0) {
    inner = batch.sizes[outer_dims];
    shape.a_batch = batch.strides[0][outer_dims];
    shape.b_batch = batch.strides[1][outer_dims];
    // b is shared by the batch: the rows of all a form one matrix.
    const bool rows_follow = plan.m == 1 ? shape.a_batch >= plan.k : shape.a_batch == plan.m * a.row_length;
    if (shape.b_batch == 0 && !a.transposed && rows_follow) {
      if (plan.m == 1) shape.a_row = shape.a_batch;
      shape.m *= inner;
      shape.a_batch = 0;
      inner = 1;
    }
  }
  const int64_t c_step = shape.m * shape.n * inner;
  for (int64_t outer = 0; outer < plan.out.numel() / c_step; ++outer) {
    int64_t a_at = 0;
    int64_t b_at = 0;
    int64_t rest = outer;
    for (int d = outer_dims - 1; d >= 0; --d) {
      a_at += rest % batch.sizes[d] * batch.strides[0][d];
      b_at += rest % batch.sizes[d] * batch.strides[1][d];
      rest /= batch.sizes[d];
    }
    for (int64_t first = 0; first < inner; first += kMostBatches) {
      shape.batches = std::min(kMostBatches, inner - first);
      gemm({.shape = shape,
            .a = at(a.tensor(), a_at + first * shape.a_batch),
            .b = at(b.tensor(), b_at + first * shape.b_batch),
            .c = const_cast<char*>(at(plan.out, outer * c_step + first * shape.c_batch))},
           plan.out.device());
    }
  }
}

Tensor matmul_cuda(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  const MatmulPlan plan = prepare_matmul(a, b, options);
  if (!plan.done) multiply(plan, prepare_operand(a, options.transpose_a), prepare_operand(b, options.transpose_b));
  return plan.out;
}

// Makes the bias dense and aligned, as gemm requires.
Tensor prepare_bias(const Tensor& bias) {
  const bool aligned = reinterpret_cast<uintptr_t>(bias.raw_data()) % cuda::kBiasAlignment == 0;
  return aligned && bias.is_contiguous() ? bias : clone(bias);
}

// The matrix product of linear, with its inputs and outputs. Its arguments must outlive it.
class LinearProduct {
 public:
  LinearProduct(const Tensor& x, const Tensor& weight, const Tensor& bias)
      : linear_(prepare_linear(x, weight, bias)),
        product_(prepare_matmul(linear_.rows, weight, {.transpose_b = true})),
        bias_(bias) {
    if (product_.done) return;
    rows_ = prepare_operand(linear_.rows, false);
    weight_ = prepare_operand(weight, true);
    if (bias.defined()) bias_ = prepare_bias(bias);
  }
  LinearProduct(const LinearProduct&) = delete;
  LinearProduct& operator=(const LinearProduct&) = delete;

  // Whether there is nothing to multiply.
  bool done() const noexcept { return product_.done; }
  Device device() const { return product_.out.device(); }

  GemmCall call() const {
    return {.shape = shape_of(product_, rows_, weight_),
            .a = rows_.tensor().raw_data(),
            .b = weight_.tensor().raw_data(),
            .c = product_.out.raw_data(),
            .bias = bias_.defined() ? bias_.raw_data() : nullptr};
  }

  // Computes the complete result: the product, or the bias alone.
  Tensor compute() const {
    if (product_.done) {
      if (bias_.defined()) copy(product_.out, bias_);
    } else if (!bias_.defined()) {
      gemm(call(), device());
    } else if (!gemm_with_epilogue(call(), device())) {
      add_to_bias();
    }
    return shaped(product_.out);
  }

  const Tensor& out() const noexcept { return product_.out; }
  // The computed [rows, out] with the leading dimensions of x.
  Tensor shaped(const Tensor& result) const {
    return view::as_strided(result, linear_.sizes, contiguous_strides(linear_.sizes), 0);
  }

 private:
  // Accumulates the product onto the bias, so that a half type is rounded once, as in one pass.
  void add_to_bias() const {
    copy(product_.out, bias_);
    GemmCall onto = call();
    onto.bias = nullptr;
    onto.shape.accumulate = true;
    gemm(onto, device());
  }

  LinearPlan linear_;
  MatmulPlan product_;
  Tensor bias_;
  MatrixOperand rows_{}, weight_{};
};

Tensor linear_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return LinearProduct(x, weight, bias).compute();
}

LinearActivation linear_activation_cuda(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                        FusedActivation activation, bool keep_pre) {
  const LinearProduct product(x, weight, bias);
  if (!product.done()) {
    GemmCall call = product.call();
    call.shape.activation = activation;
    Tensor pre;
    if (keep_pre && activation == FusedActivation::GeluTanh) {
      pre = empty(product.out().sizes(), product.out().options());
      call.pre = pre.raw_data();
    }
    if (gemm_with_epilogue(call, product.device())) {
      return {.y = product.shaped(product.out()), .pre = pre.defined() ? product.shaped(pre) : Tensor()};
    }
  }
  return activate(product.compute(), activation, keep_pre);
}

const AddKernel add_matmul(matmul, kCUDA, &matmul_cuda);
const AddKernel add_linear(linear, kCUDA, &linear_cuda);
const AddKernel add_linear_activation(linear_activation, kCUDA, &linear_activation_cuda);

}  // namespace
}  // namespace brigade::kernels
