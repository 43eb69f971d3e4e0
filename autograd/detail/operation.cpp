// Located errors, and slices: dimensions are permuted so that the reduced ones come last.
#include <brigade/autograd/detail/operation.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace brigade::autograd::detail {

// --- Adds the operation and the user's line to error messages.

namespace {

template <class E>
void rethrow_as(const Error& error, const std::string& message, SourceLocation where) {
  if (dynamic_cast<const E*>(&error)) throw E(message, where);
}

}  // namespace

void rethrow_located(const Error& error, const char* op, SourceLocation where) {
  // The message may already name the operation.
  std::string message = error.what();
  const std::string_view words = std::string_view(message).substr(0, message.rfind(" (called at "));
  if (op && !brigade::detail::says(words, op)) message = std::string(op) + ": " + message;
  if (error.where().line() != 0) where = error.where();
  rethrow_as<ShapeError>(error, message, where);
  rethrow_as<DTypeError>(error, message, where);
  rethrow_as<IndexError>(error, message, where);
  rethrow_as<ValueError>(error, message, where);
  rethrow_as<DeviceError>(error, message, where);
  throw;
}

int dimension_of(const char* op, int64_t dim, int dims, SourceLocation where) {
  return located(op, where, [&] { return wrap_dim(dim, dims); });
}

// --- Permutes dimensions so that the reduced ones come last, merges those into one, and reverses both.

namespace {

// The permutation: first the kept dimensions, then the reduced ones.
Shape slices_order(int count, const Shape& dims) {
  Shape is_reduced = Shape::filled(count, dims.empty() ? 1 : 0);
  for (int64_t dim : dims)
    if (count > 0) is_reduced[wrap_dim(dim, count)] = 1;
  Shape order;
  for (const int64_t reduced : {0, 1}) {
    for (int d = 0; d < count; ++d) {
      if (is_reduced[d] == reduced) order.push_back(d);
    }
  }
  return order;
}

Shape permuted(const Shape& sizes, const Shape& order) {
  Shape result;
  for (int64_t d : order)
    result.push_back(sizes[static_cast<int>(d)]);
  return result;
}

}  // namespace

Shape kept_sizes(const Shape& sizes, const Shape& dims) {
  Shape result = dims.empty() ? Shape::filled(sizes.size(), 1) : sizes;
  for (int64_t dim : dims) {
    const int at = wrap_dim(dim, sizes.size());
    if (!sizes.empty()) result[at] = 1;
  }
  return result;
}

int64_t reduced_count(const Shape& sizes, const Shape& dims) {
  if (dims.empty()) return sizes.numel();
  int64_t count = 1;
  for (int64_t dim : dims)
    count *= sizes.empty() ? 1 : sizes[wrap_dim(dim, sizes.size())];
  return count;
}

Tensor to_slices(const Tensor& x, const Shape& dims) {
  const Shape order = slices_order(x.dim(), dims);
  Shape sizes = permuted(x.sizes(), order);
  for (int i = 0; i < (dims.empty() ? x.dim() : std::min(dims.size(), x.dim())); ++i)
    sizes.pop_back();
  sizes.push_back(reduced_count(x.sizes(), dims));
  return x.permute(order, {}).reshape(sizes, {});
}

Tensor from_slices(const Tensor& slices, const Shape& sizes, const Shape& dims) {
  const Shape order = slices_order(sizes.size(), dims);
  Shape inverse = order;
  for (int d = 0; d < order.size(); ++d)
    inverse[static_cast<int>(order[d])] = d;
  return slices.reshape(permuted(sizes, order), {}).permute(inverse, {});
}

Tensor diagonal(const Tensor& x) {
  const int64_t rows = x.size(-2);
  const int64_t columns = x.size(-1);
  const int64_t length = std::min(rows, columns);
  Shape sizes = x.sizes();
  sizes.pop_back();
  sizes[sizes.size() - 1] = rows * columns;
  const int64_t end = length == 0 ? 0 : (length - 1) * (columns + 1) + 1;
  return x.reshape(sizes, {}).slice(-1, 0, end, columns + 1, {});
}

}  // namespace brigade::autograd::detail
