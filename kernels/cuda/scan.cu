// CUDA kernels of scans.
//
// A block processes a row, or a piece of a long one, tile by tile: each thread joins kItems adjacent elements, the
// threads' states are scanned across the warp and the block, and the state at the end of a tile carries over to the
// next. If there are few long rows, they are cut into pieces: first each block computes the state of its piece, then
// one thread per row joins these in sequence, and each block starts from the preceding state. (After Merrill and
// Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016, section 2: reduce, then scan.) The order
// is always fixed.
#include <brigade/kernels/reduce.h>

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/common/reduce.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <type_traits>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;
constexpr int64_t kTile = kThreads * kItems;
constexpr int64_t kLeastPiece = 4 * kTile;
constexpr int64_t kMostPieces = 256;  // per row, since one thread iterates over their states
constexpr int64_t kEnoughBlocks = 264;

struct ScanLayout {
  int64_t length, piece, pieces;
  bool reverse;
};

template <class C>
__device__ C shuffle_up(C value, unsigned by) {
  return __shfl_up_sync(cuda::kFullWarp, value, by);
}
template <class S>
requires std::is_class_v<S> __device__ S shuffle_up(S value, unsigned by) {
  return {__shfl_up_sync(cuda::kFullWarp, value.slope, by), __shfl_up_sync(cuda::kFullWarp, value.y, by)};
}

// Joins the states of all threads before this one; `total` is the joined state of all threads. `partial` may be reused
// after the call.
template <class Scan, class S = typename Scan::State>
__device__ S block_exclusive_scan(S own, S* partial, S& total) {
  const unsigned lane = threadIdx.x % cuda::kWarp;
  S state = own;
  for (unsigned by = 1; by < cuda::kWarp; by *= 2) {
    const S before = shuffle_up(state, by);
    if (lane >= by) state = Scan::join(before, state);
  }
  if (lane == cuda::kWarp - 1) partial[threadIdx.x / cuda::kWarp] = state;
  const S above = shuffle_up(state, 1);
  __syncthreads();
  S base = Scan::nothing();
  total = Scan::nothing();
  for (unsigned w = 0; w < kThreads / cuda::kWarp; ++w) {
    if (w == threadIdx.x / cuda::kWarp) base = total;
    total = Scan::join(total, partial[w]);
  }
  __syncthreads();
  return lane == 0 ? base : Scan::join(base, above);
}

template <class Scan, class T>
__device__ typename Scan::State load_state(const T* x, const T* factor, int64_t i) {
  using C = compute_type<T>;
  if constexpr (std::is_class_v<typename Scan::State>) {
    return {static_cast<C>(factor[i]), static_cast<C>(x[i])};
  } else {
    return static_cast<C>(x[i]);
  }
}

// Block (piece, row). With `ends_only`, writes the state of each piece to `ends`; otherwise `ends` holds the states
// from the start of the row to the end of each piece (null: one piece per row).
template <class Scan, class T>
__global__ void __launch_bounds__(kThreads)
    scan_kernel(ScanLayout layout, bool ends_only, const T* x, const T* factor, typename Scan::State* ends, T* out) {
  using S = typename Scan::State;
  BRIGADE_SHARED(S, partial, [kThreads / cuda::kWarp]);
  const int64_t piece = blockIdx.x % layout.pieces;
  const int64_t row = blockIdx.x / layout.pieces;
  const int64_t begin = piece * layout.piece;
  const int64_t end = begin + layout.piece < layout.length ? begin + layout.piece : layout.length;
  S carry = Scan::nothing();
  if (!ends_only && piece > 0) carry = ends[blockIdx.x - 1];
  for (int64_t tile = begin; tile < end; tile += kTile) {
    S states[kItems];
    int64_t places[kItems];
    S own = Scan::nothing();
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      const int64_t at = tile + threadIdx.x * kItems + u;
      places[u] = at < end ? row * layout.length + (layout.reverse ? layout.length - 1 - at : at) : -1;
      if (places[u] >= 0)
        own = u == 0 ? load_state<Scan>(x, factor, places[u]) : Scan::join(own, load_state<Scan>(x, factor, places[u]));
      states[u] = own;
    }
    S total = Scan::nothing();
    const S before = Scan::join(carry, block_exclusive_scan<Scan>(own, &partial[0], total));
    carry = Scan::join(carry, total);
    if (ends_only) continue;
#pragma unroll
    for (int u = 0; u < kItems; ++u) {
      if (places[u] >= 0) out[places[u]] = static_cast<T>(Scan::value(Scan::join(before, states[u])));
    }
  }
  if (ends_only && threadIdx.x == 0) ends[blockIdx.x] = carry;
}

// One thread per row: joins the end state of each piece with the preceding ones.
template <class Scan>
__global__ void __launch_bounds__(kThreads) join_ends_kernel(int64_t rows, int64_t pieces, typename Scan::State* ends) {
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (row >= rows) return;
  typename Scan::State state = Scan::nothing();
  for (int64_t piece = 0; piece < pieces; ++piece) {
    state = Scan::join(state, ends[row * pieces + piece]);
    ends[row * pieces + piece] = state;
  }
}

// Scans dense rows of `length`; for a dimension in the middle, the caller first moves it to the end.
template <class Scan, class T>
void scan_rows(const char* what, const Tensor& x, const Tensor& factor, const Tensor& out, int64_t length,
               bool reverse) {
  using S = typename Scan::State;
  if (x.numel() == 0) return;
  const Device device = x.device();
  const int64_t rows = x.numel() / length;
  ScanLayout layout{length, length, 1, reverse};
  if (rows < kEnoughBlocks && length >= 2 * kLeastPiece) {
    const int64_t wanted = std::min({kMostPieces, length / kLeastPiece, (kEnoughBlocks + rows - 1) / rows});
    layout.piece = (length + wanted * kTile - 1) / (wanted * kTile) * kTile;
    layout.pieces = (length + layout.piece - 1) / layout.piece;
  }
  const auto blocks = static_cast<unsigned>(rows * layout.pieces);
  const T* const from = static_cast<const T*>(x.raw_data());
  const T* const factors = factor.defined() ? static_cast<const T*>(factor.raw_data()) : nullptr;
  T* const to = static_cast<T*>(out.raw_data());
  if (layout.pieces == 1) {
    cuda::launch({what, blocks, kThreads}, device, &scan_kernel<Scan, T>, layout, false, from, factors,
                 static_cast<S*>(nullptr), to);
    return;
  }
  const Tensor room = empty({rows * layout.pieces * static_cast<int64_t>(sizeof(S))}, {kUInt8, device});
  S* const ends = static_cast<S*>(room.raw_data());
  cuda::launch({what, blocks, kThreads}, device, &scan_kernel<Scan, T>, layout, true, from, factors, ends, to);
  cuda::launch({what, cuda::blocks_for(rows, kThreads), kThreads}, device, &join_ends_kernel<Scan>, rows, layout.pieces,
               ends);
  cuda::launch({what, blocks, kThreads}, device, &scan_kernel<Scan, T>, layout, false, from, factors, ends, to);
}

// Calls run(x, factor, result) with the dimension moved to the end.
template <class Run>
Tensor along_last(const ScanPlan& plan, Run run) {
  if (plan.inner == 1) {
    run(plan.x, plan.factor, plan.result);
    return plan.result;
  }
  const Shape sizes{plan.outer, plan.length, plan.inner};
  const auto turned = [&](const Tensor& t) {
    return view::transpose(view::as_strided(t, sizes, contiguous_strides(sizes), t.storage_offset()), 1, 2);
  };
  const Tensor rows = empty({plan.outer, plan.inner, plan.length}, plan.result.options());
  run(contiguous(turned(plan.x)), plan.factor.defined() ? contiguous(turned(plan.factor)) : Tensor(), rows);
  copy(turned(plan.result), rows);
  return plan.result;
}

Tensor scan_cuda(const Tensor& x, int dim, ScanOp op, bool reverse) {
  const ScanPlan plan = prepare_scan(x, dim, op);
  return along_last(plan, [&](const Tensor& rows, const Tensor& factor, const Tensor& out) {
    const auto sums_or_products = [&]<class T>() {
      using C = compute_type<T>;
      if (op == ScanOp::Sum) {
        scan_rows<SumScan<C>, T>("cumsum", rows, factor, out, plan.length, reverse);
      } else {
        scan_rows<ProductScan<C>, T>("cumprod", rows, factor, out, plan.length, reverse);
      }
    };
    if (rows.dtype() == kInt64) {
      sums_or_products.template operator()<int64_t>();
    } else if (op == ScanOp::LogSumExp) {
      visit_floating(rows.dtype(), "logcumsumexp", [&]<class T>() {
        scan_rows<LogSumExpScan<compute_type<T>>, T>("logcumsumexp", rows, factor, out, plan.length, reverse);
      });
    } else {
      visit_floating(rows.dtype(), "scan", sums_or_products);
    }
  });
}

Tensor linear_recurrence_cuda(const Tensor& b, const Tensor& a, int dim, bool reverse) {
  const ScanPlan plan = prepare_linear_recurrence(b, a, dim);
  return along_last(plan, [&](const Tensor& rows, const Tensor& factor, const Tensor& out) {
    visit_floating(b.dtype(), "linear_recurrence", [&]<class T>() {
      scan_rows<RecurrenceScan<compute_type<T>>, T>("linear_recurrence", rows, factor, out, plan.length, reverse);
    });
  });
}

const AddKernel add_scan(scan, kCUDA, &scan_cuda);
const AddKernel add_linear_recurrence(linear_recurrence, kCUDA, &linear_recurrence_cuda);

}  // namespace
}  // namespace brigade::kernels
