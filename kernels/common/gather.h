// What reading and writing by index share on every device: checks, and the shape that both sides
// are seen in.
#pragma once

#include <brigade/core/host_device.h>
#include <brigade/core/index_error.h>
#include <brigade/kernels/gather.h>

namespace brigade::kernels {

inline constexpr IndexRole kGatherIndex{"gather", "index", "place"};
inline constexpr IndexRole kScatterIndex{"scatter", "index", "place"};
inline constexpr IndexRole kScatterAddIndex{"scatter_add", "index", "place"};
inline constexpr IndexRole kIndexFillIndex{"index_fill", "index", "slice"};
inline constexpr IndexRole kIndexCopyIndex{"index_copy", "index", "slice"};
inline constexpr IndexRole kIndexAddIndex{"index_add", "index", "slice"};

// The long side is [outer, length, inner], what is read or written of it [outer, count, inner].
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
  Tensor part;           // what the index can reach of it, dense: the result itself, or a copy of its beginning
  Tensor region;         // where the part belongs
  // Of a place that is not a slice, `index` has one entry per element.
  bool slices = false;

  // To be called when the part is written.
  Tensor finished() const;
};
ScatterPlan prepare_scatter(const Tensor& x, int dim, const Tensor& index, const Scatter& how);

// The bits of `value` in a dtype, in the first bytes.
uint64_t bits_of(Scalar value, DType dtype);

}  // namespace brigade::kernels
