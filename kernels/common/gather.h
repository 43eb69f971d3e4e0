// Device-independent parts of gather and scatter: checks, and the common shape of both sides.
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

}  // namespace brigade::kernels
