// CUDA kernels of gather and scatter. One thread per element of the index.
//
// If several indices name the same target, each bids with its position first, and the highest bid (an integer maximum,
// independent of order) writes. For sums, the targets are sorted, and the sources of each are added in order
// (detail/index_check.h).
#include <brigade/kernels/indexing.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;

__device__ inline int64_t this_thread() { return static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x; }

// The coordinates of element i in [outer, count, inner].
struct Element {
  int64_t outer, at, inner;
  __device__ Element(const IndexedShape& shape, int64_t i) {
    // Use 32 bits if they suffice: a 64-bit division takes longer than the copy.
    if (shape.elements() <= 0x7fffffffLL) {
      const auto small = static_cast<uint32_t>(i);
      const uint32_t row = small / static_cast<uint32_t>(shape.inner);
      inner = small - row * static_cast<uint32_t>(shape.inner);
      outer = row / static_cast<uint32_t>(shape.count);
      at = row - static_cast<uint32_t>(outer) * static_cast<uint32_t>(shape.count);
    } else {
      const int64_t row = i / shape.inner;
      inner = i - row * shape.inner;
      outer = row / shape.count;
      at = row - outer * shape.count;
    }
  }
};

template <class Bits>
__global__ void __launch_bounds__(kThreads)
    gather_kernel(IndexedShape shape, cuda::IndexCheck check, const int64_t* index, const Bits* x, Bits* out) {
  const int64_t i = this_thread();
  if (i >= shape.elements()) return;
  const Element element(shape, i);
  const int64_t chosen = index[i];
  out[i] = check(chosen, i) ? x[(element.outer * shape.length + chosen) * shape.inner + element.inner] : Bits{0};
}

// targets[i]: the destination of element i of the index, or of row i of slices; -1 for an invalid index, which is
// reported.
__global__ void __launch_bounds__(kThreads)
    targets_kernel(IndexedShape shape, bool slices, cuda::IndexCheck check, const int64_t* index, int64_t* targets) {
  const int64_t i = this_thread();
  if (i >= shape.elements()) return;
  const Element element(shape, i);
  const int64_t position = slices ? element.at : i;
  const int64_t chosen = index[position];
  targets[i] =
      check(chosen, position) ? (element.outer * shape.length + chosen) * shape.inner + element.inner : int64_t{-1};
}

// bids[target]: 1 + the last position that names the target.
__global__ void __launch_bounds__(kThreads) bid_kernel(int64_t count, const int64_t* targets, uint32_t* bids) {
  const int64_t i = this_thread();
  if (i < count && targets[i] >= 0) atomicMax(&bids[targets[i]], static_cast<uint32_t>(i + 1));
}

// Writes row i of `width` elements to row targets[i]. If source is null, writes `value`; if bids is null, no target is
// named twice.
template <class Bits>
__global__ void __launch_bounds__(kThreads)
    write_kernel(int64_t count, int64_t width, const int64_t* targets, const uint32_t* bids, const Bits* source,
                 Bits value, Bits* out) {
  const int64_t i = this_thread();
  if (i >= count * width) return;
  const int64_t row = width == 1 ? i : i / width;
  const int64_t target = targets[row];
  if (target < 0 || (bids && bids[target] != static_cast<uint32_t>(row + 1))) return;
  out[target * width + (i - row * width)] = source ? source[i] : value;
}

Tensor gather_cuda(const Tensor& x, int dim, const Tensor& index) {
  const GatherPlan plan = prepare_gather(x, dim, index);
  const Device device = x.device();
  const cuda::IndexCheck check(device, kGatherIndex, plan.shape.length);
  visit_bits(x.dtype(), [&]<class Bits>(Bits) {
    cuda::launch({"gather", cuda::blocks_for(plan.shape.elements(), kThreads), kThreads}, device, &gather_kernel<Bits>,
                 plan.shape, check, static_cast<const int64_t*>(plan.index.raw_data()),
                 static_cast<const Bits*>(plan.x.raw_data()), static_cast<Bits*>(plan.result.raw_data()));
  });
  brigade::cuda::throw_reported_if_blocking(device.index);
  return plan.result;
}

// The destinations of the source's rows: `count` source rows and `rows` target rows, of `width` elements each.
struct Targets {
  int64_t count, rows, width;
  Tensor places;  // int64 [count]
};
Targets find_targets(const ScatterPlan& plan, const cuda::IndexCheck& check) {
  // Adjacent elements of a slice are handled together.
  IndexedShape shape = plan.shape;
  const int64_t width = plan.slices ? shape.inner : 1;
  if (plan.slices) shape.inner = 1;
  const Device device = plan.index.device();
  Targets targets{shape.elements(), shape.outer * shape.length * shape.inner, width,
                  empty({shape.elements()}, {kInt64, device})};
  cuda::launch({plan.role->op, cuda::blocks_for(targets.count, kThreads), kThreads}, device, &targets_kernel, shape,
               plan.slices, check, static_cast<const int64_t*>(plan.index.raw_data()),
               static_cast<int64_t*>(targets.places.raw_data()));
  brigade::cuda::throw_reported_if_blocking(device.index);
  return targets;
}

Tensor as_rows(const Tensor& dense, int64_t rows, int64_t width) {
  return view::as_strided(dense, {rows, width}, {width, 1}, dense.storage_offset());
}

void write(const ScatterPlan& plan, const Targets& targets, const Scatter& how) {
  const Device device = plan.part.device();
  const auto* const places = static_cast<const int64_t*>(targets.places.raw_data());
  Tensor bids;
  if (how.source.defined() && !how.distinct) {
    if (targets.count > 0xfffffffeLL) {
      throw ShapeError("{}: at most 2^32 - 2 indices on a CUDA device, got {}", plan.role->op, targets.count);
    }
    bids = empty({targets.rows}, {kInt32, device});
    fill(bids, 0.0);
    cuda::launch({plan.role->op, cuda::blocks_for(targets.count, kThreads), kThreads}, device, &bid_kernel,
                 targets.count, places, static_cast<uint32_t*>(bids.raw_data()));
  }
  const uint64_t word = bits_of(how.value, plan.part.dtype());
  visit_bits(plan.part.dtype(), [&]<class Bits>(Bits) {
    Bits value;
    std::memcpy(&value, &word, sizeof(Bits));
    cuda::launch({plan.role->op, cuda::blocks_for(targets.count * targets.width, kThreads), kThreads}, device,
                 &write_kernel<Bits>, targets.count, targets.width, places,
                 bids.defined() ? static_cast<const uint32_t*>(bids.raw_data()) : nullptr,
                 plan.source.defined() ? static_cast<const Bits*>(plan.source.raw_data()) : nullptr, value,
                 static_cast<Bits*>(plan.part.raw_data()));
  });
}

Tensor scatter_cuda(const Tensor& x, int dim, const Tensor& index, const Scatter& how) {
  const ScatterPlan plan = prepare_scatter(x, dim, index, how);
  if (plan.part.numel() == 0 && plan.index.numel() == 0) return plan.finished();
  const cuda::IndexCheck check(x.device(), *plan.role, plan.shape.length);
  const Targets targets = find_targets(plan, check);
  if (plan.part.numel() == 0) return plan.finished();
  if (how.add) {
    cuda::add_rows(as_rows(plan.part, targets.rows, targets.width), as_rows(plan.source, targets.count, targets.width),
                   targets.places, cuda::IndexCheck::silent(targets.rows), {.accumulate = true});
  } else {
    write(plan, targets, how);
  }
  return plan.finished();
}

const AddKernel add_gather(gather, kCUDA, &gather_cuda);
const AddKernel add_scatter(scatter, kCUDA, &scatter_cuda);

}  // namespace
}  // namespace brigade::kernels
