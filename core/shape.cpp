// Strides of dense tensors, broadcasting, dimensions counted from the end, and the errors of sizes.
#include <brigade/core/shape.h>

namespace brigade {

void Shape::throw_too_many() { throw ShapeError("a tensor has at most {} dimensions", kMaxDims); }

void Shape::throw_too_large() const {
  throw ShapeError("a shape {} has more elements than fit into 64 bits; check the sizes", *this);
}

void detail::throw_size_overflow(int64_t a, char op, int64_t b) {
  throw ShapeError(
      "sizes overflow: {} {} {} does not fit into 64 bits; check the sizes and the numbers given beside them", a, op,
      b);
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (int i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

Shape contiguous_strides(const Shape& sizes) {
  Shape strides = Shape::filled(sizes.size(), 1);
  for (int i = sizes.size() - 2; i >= 0; --i)
    strides[i] = (Size(strides[i + 1]) * std::max<int64_t>(sizes[i + 1], 1)).value();
  return strides;
}

Shape broadcast_shapes(const Shape& a, const Shape& b, std::source_location where) {
  const int dims = std::max(a.size(), b.size());
  Shape result = Shape::filled(dims, 1);
  for (int back = 1; back <= dims; ++back) {
    const int64_t size_a = back <= a.size() ? a[a.size() - back] : 1;
    const int64_t size_b = back <= b.size() ? b[b.size() - back] : 1;
    if (size_a != size_b && size_a != 1 && size_b != 1) {
      throw ShapeError(where,
                       "shapes {} and {} do not broadcast: sizes {} and {} differ at dimension {} (counted in the "
                       "result); they must be equal or 1",
                       a, b, size_a, size_b, dims - back);
    }
    result[dims - back] = size_a == 1 ? size_b : size_a;
  }
  return result;
}

int wrap_dim(int64_t dim, int dims, std::source_location where) {
  const int range = std::max(dims, 1);
  if (dim < -range || dim >= range) {
    throw IndexError(where, "dimension out of range: expected {} to {} for a tensor with {} dimensions, got {}", -range,
                     range - 1, dims, dim);
  }
  return static_cast<int>(dim < 0 ? dim + range : dim);
}

}  // namespace brigade
