// Unflatten: checks the new sizes, of which one may be -1, and reshapes.
#include <brigade/nn/flatten.h>

#include <vector>

namespace brigade::nn {

Tensor UnflattenImpl::forward(const Tensor& x, SourceLocation where) {
  const CallScope scope(*this, where);
  const int64_t size = x.size(dim);
  const auto at = static_cast<int>(dim < 0 ? dim + x.dim() : dim);
  int64_t known = 1;
  int unknown = 0;
  for (const int64_t part : unflattened_size) {
    if (part == -1) {
      ++unknown;
    } else {
      known *= part;
    }
  }
  if (unflattened_size.empty() || unknown > 1 || known < 1 || (unknown == 0 ? known != size : size % known != 0)) {
    throw ShapeError(where,
                     "Unflatten: provided sizes {} don't multiply up to the size of dim {} ({}) in the input tensor {}",
                     unflattened_size, dim, size, describe(x));
  }
  std::vector<int64_t> sizes;
  for (int d = 0; d < x.dim(); ++d) {
    if (d != at) {
      sizes.push_back(x.sizes()[d]);
      continue;
    }
    for (const int64_t part : unflattened_size)
      sizes.push_back(part == -1 ? size / known : part);
  }
  return x.reshape(Shape(sizes), where);
}

}  // namespace brigade::nn
