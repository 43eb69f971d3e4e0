// Checks of shapes, and each product by matmul or an elementwise product of reshaped tensors.
#include <brigade/autograd/ops/matmul.h>

#include <brigade/autograd/autocast_mode.h>
#include <brigade/autograd/detail/operation.h>
#include <brigade/autograd/ops/arithmetic.h>
#include <brigade/autograd/ops/reduce.h>

#include <algorithm>

namespace brigade {
namespace {

[[noreturn]] void throw_shapes(const char* what, const char* expected, const Tensor& a, const Tensor& b,
                               SourceLocation where) {
  throw ShapeError(where, "{}: expected {}, got {} and {}", what, expected, a.sizes(), b.sizes());
}

// beta * input + alpha * product
Tensor add_scaled(const char* what, const Tensor& input, const Tensor& product, double beta, double alpha,
                  SourceLocation where) {
  if (input.dim() > product.dim() || broadcast_shapes(input.sizes(), product.sizes(), where) != product.sizes())
    throw_shapes(what, "an input that broadcasts to the product's shape", input, product, where);
  const Tensor scaled = alpha == 1 ? product : mul(product, alpha, where);
  if (beta == 0) return scaled;
  return add(beta == 1 ? input : mul(input, beta, where), scaled, where);
}

}  // namespace

Tensor dot(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"dot">(where, a, b)) return dot(in[0], in[1], where);
  }
  if (a.dim() != 1 || b.dim() != 1 || a.numel() != b.numel())
    throw_shapes("dot", "two vectors of equal length", a, b, where);
  return matmul(a, b, where);
}

Tensor mv(const Tensor& matrix, const Tensor& vector, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"mv">(where, matrix, vector)) return mv(in[0], in[1], where);
  }
  if (matrix.dim() != 2 || vector.dim() != 1 || matrix.sizes()[1] != vector.sizes()[0])
    throw_shapes("mv", "a matrix [n, m] and a vector [m]", matrix, vector, where);
  return matmul(matrix, vector, where);
}

Tensor outer(const Tensor& a, const Tensor& b, SourceLocation where) {
  if (a.dim() != 1 || b.dim() != 1) throw_shapes("outer", "two vectors", a, b, where);
  return mul(a.unsqueeze(1, where), b, where);
}

Tensor addmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"addmm">(where, input, a, b))
      return addmm(in[0], in[1], in[2], beta, alpha, where);
  }
  return add_scaled("addmm", input, mm(a, b, where), beta, alpha, where);
}
Tensor addmv(const Tensor& input, const Tensor& matrix, const Tensor& vector, double beta, double alpha,
             SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"addmv">(where, input, matrix, vector))
      return addmv(in[0], in[1], in[2], beta, alpha, where);
  }
  return add_scaled("addmv", input, mv(matrix, vector, where), beta, alpha, where);
}
Tensor baddbmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"baddbmm">(where, input, a, b))
      return baddbmm(in[0], in[1], in[2], beta, alpha, where);
  }
  return add_scaled("baddbmm", input, bmm(a, b, where), beta, alpha, where);
}
Tensor addbmm(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"addbmm">(where, input, a, b))
      return addbmm(in[0], in[1], in[2], beta, alpha, where);
  }
  if (a.dim() != 3 || b.dim() != 3 || a.sizes()[0] != b.sizes()[0] || a.sizes()[2] != b.sizes()[1])
    throw_shapes("addbmm", "[batch, n, k] and [batch, k, m]", a, b, where);
  // One product: the batch becomes part of the summed dimension.
  const int64_t n = a.sizes()[1];
  const int64_t m = b.sizes()[2];
  const int64_t inner = a.sizes()[0] * a.sizes()[2];
  const Tensor left = a.permute({1, 0, 2}, where).reshape({n, inner}, where);
  return add_scaled("addbmm", input, mm(left, b.reshape({inner, m}, where), where), beta, alpha, where);
}

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"bilinear">(where, a, b, weight, bias))
      return bilinear(in[0], in[1], in[2], in[3], where);
  }
  const bool fits = weight.dim() == 3 && a.dim() >= 1 && a.dim() == b.dim() &&
                    std::equal(a.sizes().begin(), a.sizes().end() - 1, b.sizes().begin()) &&
                    a.size(-1) == weight.sizes()[1] && b.size(-1) == weight.sizes()[2];
  if (!fits) {
    throw ShapeError(where,
                     "bilinear: expected [..., n] and [..., m] with equal leading dimensions, for a weight [out, n, m] "
                     "of {}, got {} and {}",
                     weight.sizes(), a.sizes(), b.sizes());
  }
  const int64_t out = weight.sizes()[0];
  if (bias.defined() && (bias.dim() == 0 || bias.sizes()[0] != out)) {
    throw ShapeError(where, "bilinear: expected a bias [{}] for a weight [out, n, m] of {}, got {}", out,
                     weight.sizes(), describe(bias));
  }
  const int64_t n = weight.sizes()[1];
  const int64_t m = weight.sizes()[2];
  Shape sizes = a.sizes();
  sizes.pop_back();
  const int64_t rows = sizes.numel();
  sizes.push_back(out);
  const Tensor columns = weight.permute({1, 0, 2}, where).reshape({n, out * m}, where);
  const Tensor products = mm(a.reshape({rows, n}, where), columns, where).reshape({rows, out, m}, where);
  const Tensor y = bmm(products, b.reshape({rows, m, 1}, where), where).reshape(sizes, where);
  return bias.defined() ? add_scaled("bilinear", bias, y, 1, 1, where) : y;
}

Tensor kron(const Tensor& a, const Tensor& b, SourceLocation where) {
  const int dims = std::max(a.dim(), b.dim());
  if (2 * dims > kMaxDims) throw_shapes("kron", "tensors with up to 32 dimensions", a, b, where);
  Shape left, right, sizes;
  for (int d = 0; d < dims; ++d) {
    const int in_a = d - (dims - a.dim());
    const int in_b = d - (dims - b.dim());
    const int64_t n = in_a < 0 ? 1 : a.sizes()[in_a];
    const int64_t m = in_b < 0 ? 1 : b.sizes()[in_b];
    left.push_back(n);
    left.push_back(1);
    right.push_back(1);
    right.push_back(m);
    sizes.push_back((Size(n) * m).value());
  }
  return mul(a.reshape(left, where), b.reshape(right, where), where).reshape(sizes, where);
}

Tensor trace(const Tensor& x, SourceLocation where) {
  if (autograd::autocast_is_on()) [[unlikely]] {
    if (const auto in = autograd::cast_inputs<"trace">(where, x)) return trace(in[0], where);
  }
  if (x.dim() != 2) {
    throw ShapeError(where, "trace: expected a matrix, got {}", x.sizes());
  }
  return sum(autograd::detail::diagonal(x), {}, false, where);
}

}  // namespace brigade
