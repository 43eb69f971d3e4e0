// Sizes, strides and offset of each view; reshape is a view where the strides allow it.
#include <brigade/core/view.h>

namespace brigade::view {
namespace {

// Without the bounds check: for views that are inside by construction.
Tensor make(const Tensor& tensor, const Shape& sizes, const Shape& strides, int64_t offset) {
  return Tensor(make_intrusive<TensorImpl>(tensor.storage(), sizes, strides, offset, tensor.dtype()));
}

}  // namespace

Tensor as_strided(const Tensor& tensor, const Shape& sizes, const Shape& strides, int64_t offset) {
  if (sizes.size() != strides.size()) {
    throw ShapeError("as_strided: sizes {} and strides {} have different lengths", sizes, strides);
  }
  if (std::any_of(sizes.begin(), sizes.end(), [](int64_t size) { return size < 0; }))
    throw ShapeError("as_strided: sizes must not be negative, got {}", sizes);
  if (offset < 0) throw IndexError("as_strided: the offset must not be negative, got {}", offset);
  if (sizes.numel() > 0) {
    Size lowest(offset);
    Size highest(offset);
    for (int i = 0; i < sizes.size(); ++i) {
      const Size reach = Size(sizes[i] - 1) * strides[i];
      (reach.value() < 0 ? lowest : highest) += reach.value();
    }
    const int64_t capacity = static_cast<int64_t>(tensor.storage()->bytes() / tensor.itemsize());
    if (lowest.value() < 0 || highest.value() >= capacity) {
      throw IndexError("as_strided: sizes {}, strides {}, offset {} reach outside a storage of {} elements", sizes,
                       strides, offset, capacity);
    }
  }
  return make(tensor, sizes, strides, offset);
}

Tensor alias(const Tensor& tensor) { return make(tensor, tensor.sizes(), tensor.strides(), tensor.storage_offset()); }

std::optional<Shape> reshape_strides(const Tensor& tensor, const Shape& sizes) {
  if (tensor.is_contiguous()) return contiguous_strides(sizes);
  if (tensor.numel() == 0) return contiguous_strides(sizes);
  // Walk both shapes from the back: a run of old dimensions that is contiguous in memory can be
  // split into any new dimensions of the same product.
  Shape strides = Shape::filled(sizes.size(), 1);
  int to = sizes.size() - 1;
  int64_t run_stride = tensor.dim() > 0 ? tensor.strides().back() : 1;
  int64_t old_product = 1;
  int64_t new_product = 1;
  for (int from = tensor.dim() - 1; from >= 0; --from) {
    old_product *= tensor.sizes()[from];
    const bool run_ends =
        from == 0 || (tensor.sizes()[from - 1] != 1 && tensor.strides()[from - 1] != old_product * run_stride);
    if (!run_ends) continue;
    while (to >= 0 && (new_product < old_product || sizes[to] == 1)) {
      strides[to] = new_product * run_stride;
      new_product *= sizes[to];
      --to;
    }
    if (new_product != old_product) return std::nullopt;
    if (from > 0) {
      run_stride = tensor.strides()[from - 1];
      old_product = new_product = 1;
    }
  }
  return to < 0 ? std::optional(strides) : std::nullopt;
}

Shape infer_sizes(const Shape& sizes, int64_t numel, SourceLocation where) {
  Shape result = sizes;
  int unknown = -1;
  int64_t known = 1;
  bool fits = true;
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      if (unknown >= 0) throw ShapeError(where, "only one size may be -1, got {}", sizes);
      unknown = i;
    } else if (sizes[i] < 0) {
      throw ShapeError(where, "sizes must be -1 or at least 0, got {}", sizes);
    } else {
      fits = !__builtin_mul_overflow(known, sizes[i], &known) && fits;
    }
  }
  if (fits && unknown >= 0 && known > 0 && numel % known == 0) {
    result[unknown] = numel / known;
  } else if (!fits || unknown >= 0 || known != numel) {
    throw ShapeError(where, "shape {} does not fit {} elements", sizes, numel);
  }
  return result;
}

Tensor permute(const Tensor& tensor, const Shape& dims) {
  if (dims.size() != tensor.dim()) {
    throw ShapeError("permute: {} must name each of the {} dimensions once", dims, tensor.dim());
  }
  Shape sizes;
  Shape strides;
  DimSet seen;
  for (int64_t dim : dims) {
    const int from = wrap_dim(dim, tensor.dim());
    if (!seen.add(from)) throw ShapeError("permute: dimension {} appears twice in {}", dim, dims);
    sizes.push_back(tensor.sizes()[from]);
    strides.push_back(tensor.strides()[from]);
  }
  return make(tensor, sizes, strides, tensor.storage_offset());
}

Tensor transpose(const Tensor& tensor, int64_t dim0, int64_t dim1) {
  const int a = wrap_dim(dim0, tensor.dim());
  const int b = wrap_dim(dim1, tensor.dim());
  Shape sizes = tensor.sizes();
  Shape strides = tensor.strides();
  if (tensor.dim() > 0) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return make(tensor, sizes, strides, tensor.storage_offset());
}

Tensor expand(const Tensor& tensor, const Shape& sizes, SourceLocation where) {
  Shape result = sizes;
  Shape strides = Shape::filled(sizes.size(), 0);
  const int added = sizes.size() - tensor.dim();
  for (int i = 0; i < sizes.size(); ++i) {
    const int64_t have = i >= added ? tensor.sizes()[i - added] : 1;
    if (result[i] == -1 && i >= added) result[i] = have;
    if (added < 0 || result[i] < 0 || (have != result[i] && have != 1)) {
      throw ShapeError(where, "expand: {} does not expand to {}; only sizes of 1 can be stretched", tensor.sizes(),
                       sizes);
    }
    if (i >= added && have == result[i]) strides[i] = tensor.strides()[i - added];
  }
  if (added < 0) {
    throw ShapeError(where, "expand: {} has more dimensions than {}", tensor.sizes(), sizes);
  }
  return make(tensor, result, strides, tensor.storage_offset());
}

Tensor unsqueeze(const Tensor& tensor, int64_t dim) {
  const int at = wrap_dim(dim, tensor.dim() + 1);
  Shape sizes = tensor.sizes();
  Shape strides = tensor.strides();
  sizes.insert(at, 1);
  strides.insert(at, at < tensor.dim() ? (Size(tensor.sizes()[at]) * tensor.strides()[at]).value() : 1);
  return make(tensor, sizes, strides, tensor.storage_offset());
}

Tensor squeeze(const Tensor& tensor, int64_t dim) {
  const int at = wrap_dim(dim, tensor.dim());
  Shape sizes = tensor.sizes();
  Shape strides = tensor.strides();
  if (tensor.dim() > 0 && sizes[at] == 1) {
    sizes.erase(at);
    strides.erase(at);
  }
  return make(tensor, sizes, strides, tensor.storage_offset());
}

Tensor slice(const Tensor& tensor, int64_t dim, int64_t start, int64_t end, int64_t step, SourceLocation where) {
  if (tensor.dim() == 0) throw IndexError("slice: a tensor without dimensions cannot be sliced", where);
  if (step < 1) throw ValueError(where, "slice: step must be at least 1, got {}", step);
  const int at = wrap_dim(dim, tensor.dim(), where);
  const int64_t size = tensor.sizes()[at];
  const auto clamp = [size](int64_t index) { return std::clamp<int64_t>(index < 0 ? index + size : index, 0, size); };
  start = clamp(start);
  end = std::max(clamp(end), start);
  step = std::min(step, std::max<int64_t>(size, 1));  // a longer one takes no other elements
  Shape sizes = tensor.sizes();
  Shape strides = tensor.strides();
  sizes[at] = end > start ? (end - start - 1) / step + 1 : 0;
  const int64_t offset = (Size(start) * strides[at] + tensor.storage_offset()).value();
  strides[at] = (Size(strides[at]) * step).value();
  return make(tensor, sizes, strides, offset);
}

Tensor select(const Tensor& tensor, int64_t dim, int64_t index, SourceLocation where) {
  if (tensor.dim() == 0) throw IndexError("select: a tensor without dimensions cannot be indexed", where);
  const int at = wrap_dim(dim, tensor.dim(), where);
  const int64_t size = tensor.sizes()[at];
  if (index < -size || index >= size) {
    throw IndexError(where, "select: index {} is out of range for dimension {} of size {}", index, at, size);
  }
  Shape sizes = tensor.sizes();
  Shape strides = tensor.strides();
  const int64_t offset = (Size(index < 0 ? index + size : index) * strides[at] + tensor.storage_offset()).value();
  sizes.erase(at);
  strides.erase(at);
  return make(tensor, sizes, strides, offset);
}

Tensor flat(const Tensor& tensor) {
  if (!tensor.is_contiguous()) throw ShapeError("flat: expected a contiguous tensor, got strides {}", tensor.strides());
  return make(tensor, {tensor.numel()}, {1}, tensor.storage_offset());
}

}  // namespace brigade::view
