// Device-independent parts of the kernels by index: checks, shapes, allocation of results, and keys of a sort.
#pragma once

#include <brigade/core/compiler.h>
#include <brigade/core/index_error.h>
#include <brigade/kernels/indexing.h>

#include <bit>
#include <cstdint>
#include <type_traits>

namespace brigade::kernels {

// --- Gather and scatter: checks, and the common shape of both sides.

inline constexpr IndexRole kGatherIndex{"gather", "index", "place"};
inline constexpr IndexRole kScatterIndex{"scatter", "index", "place"};
inline constexpr IndexRole kScatterAddIndex{"scatter_add", "index", "place"};
inline constexpr IndexRole kIndexFillIndex{"index_fill", "index", "slice"};
inline constexpr IndexRole kIndexCopyIndex{"index_copy", "index", "slice"};
inline constexpr IndexRole kIndexAddIndex{"index_add", "index", "slice"};

// The indexed tensor is [outer, length, inner]; the elements read or written are [outer, count, inner].
struct IndexedShape {
  int64_t outer = 1, length = 1, count = 1, inner = 1;

  BRIGADE_HOST_DEVICE int64_t elements() const { return outer * count * inner; }
};

struct GatherPlan {
  IndexedShape shape;
  Tensor x, index;  // dense
  Tensor result;    // not filled
};
// Throws ShapeError, DTypeError, DeviceError.
GatherPlan prepare_gather(const Tensor& x, int dim, const Tensor& index);

struct ScatterPlan {
  IndexedShape shape;
  const IndexRole* role = nullptr;
  Tensor index, source;  // dense; the source may be undefined
  Tensor result;         // a copy of x
  Tensor part;           // the part that the index can reach, dense: the result itself, or a copy of its leading part
  Tensor region;         // the view of the result that the part is copied back to
  // Without slices, `index` has one entry per element.
  bool slices = false;

  // Returns the result; call it after the part is written.
  Tensor finished() const;
};
ScatterPlan prepare_scatter(const Tensor& x, int dim, const Tensor& index, const Scatter& how);

// The bits of `value` as an element of `dtype`, in the first bytes.
uint64_t bits_of(Scalar value, DType dtype);

// --- cat and one_hot.

inline constexpr IndexRole kOneHotIndex{"one_hot", "index", "class"};

// A tensor of shape [0] can be concatenated with tensors of any shape, and adds nothing (as in PyTorch).
bool adds_nothing(const Tensor& tensor);
// The first tensor that adds elements, or the first one if none does. The result has its dimensions.
const Tensor& leading_tensor(std::span<const Tensor> tensors);
// The result of cat, not filled. Throws ValueError, ShapeError, DeviceError.
Tensor prepare_cat(std::span<const Tensor> tensors, int dim);
// The result of one_hot, zeros. Throws DTypeError, ValueError.
Tensor prepare_one_hot(const Tensor& indices, int64_t classes);

// --- Reading rows and adding to rows by index.

inline constexpr IndexRole kEmbeddingIndex{"embedding", "index", "row"};
inline constexpr IndexRole kEmbeddingBackwardIndex{"embedding_backward", "index", "row"};
inline constexpr IndexRole kSelectIndex{"index_select", "index", "row"};

// The result of embedding, not filled. Throws ShapeError, DTypeError, DeviceError.
Tensor prepare_embedding(const Tensor& weight, const Tensor& indices);
// The result of index_rows, not filled. Throws the same.
Tensor prepare_index_rows(const Tensor& x, const Tensor& indices);
// The result of embedding_backward: `options.out`, or a new tensor, not filled. Throws the same.
Tensor prepare_embedding_backward(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options);

// Calls body with the type of any dtype that can be summed; throws DTypeError for bool.
template <class Body>
void visit_summable(DType dtype, Body&& body) {
  switch (dtype) {
    case kInt64: return body.template operator()<int64_t>();
    case kInt32: return body.template operator()<int32_t>();
    case kUInt8: return body.template operator()<uint8_t>();
    default: return visit_floating(dtype, "embedding_backward", body);
  }
}

// --- Sorting: slices along a dimension, and integer keys that order like the elements.

struct SortPlan {
  Tensor x;  // dense [outer, length, inner]
  int64_t outer = 1, length = 1, inner = 1;
  int64_t kept = 1;  // of a slice
  Sorted result;     // [outer, kept, inner], not filled
};
SortPlan prepare_sort(const Tensor& x, int dim);
// Throws ValueError.
SortPlan prepare_topk(const Tensor& x, int64_t k, int dim);

// 64 bits for 64-bit types, 32 bits for the others.
template <class T>
using sort_key = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// a comes before b in the requested order exactly when key(a) < key(b). Floating numbers use their bits, inverted for
// negative numbers; a NaN has the largest key.
template <class T>
BRIGADE_HOST_DEVICE sort_key<T> sort_key_of(T element, bool descending) {
  using Key = sort_key<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  Key key;
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, uint8_t>) {
    key = static_cast<Key>(element);
  } else if constexpr (std::is_integral_v<T>) {
    key = static_cast<Key>(element) ^ kSign;
  } else {
    using C = compute_type<T>;
    const C value = static_cast<C>(element);
    const Key bits = std::bit_cast<Key>(value == C(0) ? C(0) : value);
    key = value != value ? static_cast<Key>(~Key{0}) : bits & kSign ? static_cast<Key>(~bits) : bits | kSign;
  }
  return descending ? static_cast<Key>(~key) : key;
}

}  // namespace brigade::kernels
