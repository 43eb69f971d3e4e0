#include <brigade/kernels/matmul.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {

namespace {

void check_operands(const Tensor& a, const Tensor& b, const char* what) {
  if (a.dtype() != b.dtype() || !is_floating_point(a.dtype())) {
    throw DTypeError(std::string(what) + ": expected two tensors of one floating dtype, got " + describe(a) + " and " +
                     describe(b) + "; convert one with .to()");
  }
}

void check_out(const Tensor& out, const Shape& sizes, DType dtype, const char* what) {
  if (out.sizes() == sizes && out.dtype() == dtype && out.is_contiguous()) return;
  throw ShapeError(std::string(what) + ": out must be a contiguous " + name(dtype) + " " + to_string(sizes) + ", got " +
                   describe(out));
}

// A matrix as gemm takes it: row-major with some row length, possibly to be transposed. Copies when no stride is 1.
struct Operand {
  Tensor tensor;
  int64_t row_length;
  bool transposed;
};

Operand prepare(const Tensor& x, bool transpose) {
  const int dims = x.dim();
  const int64_t rows = x.sizes()[dims - 2];
  const int64_t columns = x.sizes()[dims - 1];
  const int64_t row_stride = x.strides()[dims - 2];
  const int64_t column_stride = x.strides()[dims - 1];
  if ((column_stride == 1 || columns == 1) && (row_stride >= columns || rows == 1)) {
    return {x, rows == 1 ? std::max<int64_t>(columns, 1) : row_stride, transpose};
  }
  if ((row_stride == 1 || rows == 1) && (column_stride >= rows || columns == 1)) {
    return {x, columns == 1 ? std::max<int64_t>(rows, 1) : column_stride, !transpose};
  }
  return {clone(x), std::max<int64_t>(columns, 1), transpose};
}

template <class T>
void multiply(const Operand& a, const Operand& b, const Tensor& out, int64_t m, int64_t n, int64_t k, bool accumulate) {
  const T* x = static_cast<const T*>(a.tensor.raw_data());
  const T* y = static_cast<const T*>(b.tensor.raw_data());
  T* z = static_cast<T*>(out.raw_data());
  const int batch_dims = out.dim() - 2;
  int64_t batches = 1;
  for (int d = 0; d < batch_dims; ++d)
    batches *= out.sizes()[d];
  const auto offset_of = [&](const Tensor& operand, int64_t batch) {
    int64_t offset = 0;
    const int added = batch_dims - (operand.dim() - 2);
    for (int d = batch_dims - 1; d >= 0; --d) {
      const int64_t index = batch % out.sizes()[d];
      batch /= out.sizes()[d];
      if (d >= added && operand.sizes()[d - added] != 1) offset += index * operand.strides()[d - added];
    }
    return offset;
  };
  const auto one = [&](int64_t batch) {
    cpu::gemm(a.transposed, b.transposed, m, n, k, x + offset_of(a.tensor, batch), a.row_length,
              y + offset_of(b.tensor, batch), b.row_length, accumulate ? T(1) : T(0), z + batch * m * n, n);
  };
  if (batches == 1) {
    one(0);
    return;
  }
  // Many small products share the threads among them; a product inside a parallel region runs on one.
  cpu::parallel_for(
      batches,
      [&](int64_t begin, int64_t end) {
        for (int64_t batch = begin; batch < end; ++batch)
          one(batch);
      },
      m * n * std::max<int64_t>(k, 1) / 16);
}

Tensor matmul_cpu(const Tensor& a, const Tensor& b, const MatmulOptions& options) {
  check_operands(a, b, "matmul");
  if (a.dim() < 2 || b.dim() < 2) {
    throw ShapeError("matmul kernel: expected at least 2 dimensions, got " + to_string(a.sizes()) + " and " +
                     to_string(b.sizes()));
  }
  if (is_half(a.dtype())) {
    MatmulOptions in_float{options.transpose_a, options.transpose_b};
    Tensor product = cast(matmul_cpu(cast(a, kFloat32), cast(b, kFloat32), in_float), a.dtype());
    if (!options.out.defined()) return product;
    check_out(options.out, product.sizes(), a.dtype(), "matmul");
    if (options.accumulate) {
      add_inplace(options.out, product, 1.0);
    } else {
      copy(options.out, product);
    }
    return options.out;
  }
  const auto rows = [](const Tensor& x, bool t) { return x.sizes()[x.dim() - (t ? 1 : 2)]; };
  const auto columns = [](const Tensor& x, bool t) { return x.sizes()[x.dim() - (t ? 2 : 1)]; };
  const int64_t m = rows(a, options.transpose_a);
  const int64_t k = columns(a, options.transpose_a);
  const int64_t n = columns(b, options.transpose_b);
  if (rows(b, options.transpose_b) != k) {
    throw ShapeError("mat1 and mat2 shapes cannot be multiplied (" + std::to_string(m) + "x" + std::to_string(k) +
                     " and " + std::to_string(rows(b, options.transpose_b)) + "x" + std::to_string(n) + "): from " +
                     to_string(a.sizes()) + (options.transpose_a ? " transposed" : "") + " and " +
                     to_string(b.sizes()) + (options.transpose_b ? " transposed" : ""));
  }
  const auto batch_sizes = [](const Tensor& x) {
    return Shape(std::span(x.sizes().begin(), static_cast<size_t>(x.dim() - 2)));
  };
  Shape sizes = broadcast_shapes(batch_sizes(a), batch_sizes(b));
  sizes.push_back(m);
  sizes.push_back(n);
  Tensor out = options.out;
  if (out.defined()) {
    check_out(out, sizes, a.dtype(), "matmul");
  } else {
    out = empty(sizes, a.options());
  }
  if (out.numel() == 0) return out;
  const bool accumulate = options.accumulate && options.out.defined();
  const Operand x = prepare(a, options.transpose_a);
  const Operand y = prepare(b, options.transpose_b);
  if (a.dtype() == kFloat32) {
    multiply<float>(x, y, out, m, n, k, accumulate);
  } else {
    multiply<double>(x, y, out, m, n, k, accumulate);
  }
  return out;
}

Tensor linear_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  check_operands(x, weight, "linear");
  if (weight.dim() != 2 || x.dim() < 1 || x.sizes().back() != weight.sizes()[1]) {
    throw ShapeError("linear: expected input [..., in] and weight [out, in], got input " + to_string(x.sizes()) +
                     " and weight " + to_string(weight.sizes()) + "; mat1 and mat2 shapes cannot be multiplied");
  }
  const int64_t in = weight.sizes()[1];
  const int64_t out_features = weight.sizes()[0];
  if (bias.defined() && (bias.dim() != 1 || bias.sizes()[0] != out_features || bias.dtype() != x.dtype())) {
    throw ShapeError("linear: expected a bias " + std::string(name(x.dtype())) + " [" + std::to_string(out_features) +
                     "], got " + describe(bias));
  }
  Shape sizes = x.sizes();
  sizes[sizes.size() - 1] = out_features;
  const int64_t rows = in == 0 ? sizes.numel() / std::max<int64_t>(out_features, 1) : x.numel() / in;
  const Tensor flat = view::as_strided(contiguous(x), {rows, in}, {in, 1}, x.is_contiguous() ? x.storage_offset() : 0);
  MatmulOptions options{.transpose_b = true};
  if (bias.defined() && !is_half(x.dtype())) {
    // The bias is what the product is added to: no second pass over the result.
    options.out = empty({rows, out_features}, x.options());
    copy(options.out, bias);
    options.accumulate = true;
  }
  Tensor result = matmul_cpu(flat, weight, options);
  if (bias.defined() && is_half(x.dtype())) add_inplace(result, bias, 1.0);
  return view::as_strided(result, sizes, contiguous_strides(sizes), 0);
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&, const MatmulOptions&)> matmul("matmul", &matmul_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&)> linear("linear", &linear_cpu);

}  // namespace brigade::kernels
