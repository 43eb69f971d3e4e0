// Device-independent parts of the matrix products and of orthogonalize.
#include <brigade/kernels/common/matmul.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/activation.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

void check_operands(const Tensor& a, const Tensor& b, const char* what) {
  const bool has_product = is_floating_point(a.dtype()) || (a.dtype() != kBool && a.device() == Device());
  if (a.dtype() != b.dtype() || !has_product) {
    throw DTypeError("{}: expected two tensors of one floating dtype{}, got {} and {}; convert one with .to()", what,
                     a.device() == Device() ? ", or of one dtype of integers" : "", describe(a), describe(b));
  }
}

void check_operand_device(const Tensor& x, const Tensor& other, const char* what) {
  if (x.device() == other.device()) return;
  throw DeviceError("{}: all tensors must be on one device, got {} and {}", what, x.device(), other.device());
}

void check_out(const Tensor& out, const Shape& sizes, DType dtype) {
  if (out.sizes() == sizes && out.dtype() == dtype && out.is_contiguous()) return;
  throw ShapeError("matmul: out must be a contiguous {} {}, got {}", name(dtype), sizes, describe(out));
}

}  // namespace

MatrixOperand prepare_operand(const Tensor& x, bool transpose) {
  const int dims = x.dim();
  const int64_t rows = x.sizes()[dims - 2];
  const int64_t columns = x.sizes()[dims - 1];
  const int64_t row_stride = x.strides()[dims - 2];
  const int64_t column_stride = x.strides()[dims - 1];
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1)) {
    return {&x, {}, rows == 1 ? std::max<int64_t>(columns, 1) : row_stride, transpose};
  }
  if ((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1)) {
    return {&x, {}, columns == 1 ? std::max<int64_t>(rows, 1) : column_stride, !transpose};
  }
  return {&x, clone(x), std::max<int64_t>(columns, 1), transpose};
}

MatmulPlan prepare_matmul(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  check_operands(a, b, "matmul");
  check_operand_device(a, b, "matmul");
  if (a.dim() < 2 || b.dim() < 2) {
    throw ShapeError("matmul kernel: expected at least 2 dimensions, got {} and {}", a.sizes(), b.sizes());
  }
  const auto rows = [](const Tensor& x, bool t) { return x.sizes()[x.dim() - (t ? 1 : 2)]; };
  const auto columns = [](const Tensor& x, bool t) { return x.sizes()[x.dim() - (t ? 2 : 1)]; };
  MatmulPlan plan;
  plan.m = rows(a, options.transpose_a);
  plan.k = columns(a, options.transpose_a);
  plan.n = columns(b, options.transpose_b);
  if (rows(b, options.transpose_b) != plan.k) {
    throw ShapeError("mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{}): from {}{} and {}{}", plan.m, plan.k,
                     rows(b, options.transpose_b), plan.n, a.sizes(), options.transpose_a ? " transposed" : "",
                     b.sizes(), options.transpose_b ? " transposed" : "");
  }
  const auto batch_sizes = [](const Tensor& x) {
    return Shape(std::span(x.sizes().begin(), static_cast<size_t>(x.dim() - 2)));
  };
  Shape sizes;
  if (a.dim() > 2 || b.dim() > 2) sizes = broadcast_shapes(batch_sizes(a), batch_sizes(b));
  sizes.push_back(plan.m);
  sizes.push_back(plan.n);
  plan.out = options.out;
  plan.accumulate = options.accumulate && options.out.defined();
  if (plan.out.defined()) {
    check_operand_device(a, plan.out, "matmul");
    check_out(plan.out, sizes, a.dtype());
  } else {
    plan.out = empty(sizes, a.options());
  }
  plan.done = plan.out.numel() == 0 || plan.k == 0;
  if (plan.done && !plan.accumulate) fill(plan.out, 0);
  return plan;
}

LinearPlan prepare_linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_operands(x, weight, "linear");
  check_operand_device(x, weight, "linear");
  if (weight.dim() != 2 || x.dim() < 1 || x.sizes().back() != weight.sizes()[1]) {
    throw ShapeError(
        "linear: expected input [..., in] and weight [out, in] or [in], got input {} and weight {}; mat1 and "
        "mat2 shapes cannot be multiplied",
        x.sizes(), weight.sizes());
  }
  const int64_t in = weight.sizes()[1];
  const int64_t out_features = weight.sizes()[0];
  if (bias.defined()) {
    check_operand_device(x, bias, "linear");
    if (bias.dim() != 1 || bias.sizes()[0] != out_features || bias.dtype() != x.dtype()) {
      throw ShapeError("linear: expected a bias {} [{}], got {}", name(x.dtype()), out_features, describe(bias));
    }
  }
  LinearPlan plan{.rows = {}, .sizes = x.sizes()};
  plan.sizes[plan.sizes.size() - 1] = out_features;
  int64_t rows = 1;
  for (int d = 0; d + 1 < x.dim(); ++d)
    rows *= x.sizes()[d];
  const auto strides = view::reshape_strides(x, {rows, in});
  plan.rows = strides ? view::as_strided(x, {rows, in}, *strides, x.storage_offset())
                      : view::as_strided(clone(x), {rows, in}, {in, 1}, 0);
  return plan;
}

LinearActivation activate(Tensor pre, FusedActivation activation, bool keep_pre) {
  if (activation == FusedActivation::Relu) return {.y = relu(pre), .pre = {}};
  Tensor y = gelu(pre, true);
  return {.y = std::move(y), .pre = keep_pre ? std::move(pre) : Tensor()};
}

// --- Argument checks of orthogonalize.

void check_orthogonalize(const Tensor& matrix, const Tensor& fresh) {
  if (matrix.dim() != 2 || !matrix.is_contiguous())
    throw ShapeError("orthogonalize: expected a contiguous matrix, got {}", describe(matrix));
  if (!is_floating_point(matrix.dtype()))
    throw DTypeError("orthogonalize: expected a floating matrix, got {}", describe(matrix));
  if (!fresh.defined()) return;
  if (fresh.sizes() != matrix.sizes() || fresh.dtype() != matrix.dtype() || fresh.device() != matrix.device() ||
      !fresh.is_contiguous()) {
    throw ShapeError(
        "orthogonalize: fresh columns for {} must be contiguous and of its sizes, dtype and device, got {}",
        describe(matrix), describe(fresh));
  }
}

}  // namespace brigade::kernels
