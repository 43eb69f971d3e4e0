// Strides of dense tensors, broadcasting, dimensions counted from the end, and the errors of sizes.
#include <brigade/core/shape.h>

namespace brigade {

void Shape::copy_far(const Shape& other) {
  if (this == &other) return;
  int64_t* room = near_;
  if (!other.is_near()) room = is_near() ? new int64_t[kMaxDims] : values_;
  std::copy(other.begin(), other.end(), room);
  if (!is_near() && room != values_) delete[] values_;
  values_ = room;
  size_ = other.size_;
}

void Shape::take_far(Shape& other) noexcept {
  if (this == &other) return;
  if (!is_near()) delete[] values_;
  if (other.is_near()) {
    values_ = near_;
    copy_near(other);
    return;
  }
  values_ = other.values_;
  size_ = other.size_;
  other.values_ = other.near_;
  other.size_ = 0;
}

void Shape::make_room() {
  if (size_ == kMaxDims) throw ShapeError("a tensor has at most {} dimensions", kMaxDims);
  if (size_ > kNear) return;
  auto* const far = new int64_t[kMaxDims];
  std::copy(begin(), end(), far);
  values_ = far;
}

void Shape::come_back() noexcept {
  int64_t* const far = values_;
  std::copy(far, far + kNear, near_);
  delete[] far;
  values_ = near_;
}

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
