// CUDA kernels of sort. Short rows: a block sorts one or several rows in shared memory. Long rows are sorted all at
// once by the radix sort of detail/sort_indices.h: by the bytes of the keys, lowest first, and then by row.
#include <brigade/kernels/indexing.h>

#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/bitonic.h>
#include <brigade/kernels/cuda/detail/sort_indices.h>
#include <brigade/kernels/cuda/detail/sorted_slices.h>
#include <brigade/kernels/elementwise.h>

#include <bit>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr uint32_t kShortRow = 2048;
constexpr uint32_t kSharedEntries = 2048;
constexpr uint32_t kRowEntries = 1024;  // per block, if several rows fit

// Each row has `room` entries (a power of two), n of which hold its elements; the padding entries sort last.
template <class T>
__global__ void __launch_bounds__(kThreads)
    sort_short_rows_kernel(int64_t rows, uint32_t n, uint32_t room, uint32_t rows_per_block, bool descending,
                           const T* x, T* values, int64_t* indices) {
  using Key = sort_key<T>;
  constexpr bool kWide = sizeof(Key) == 8;
  BRIGADE_SHARED(uint64_t, keys, [kSharedEntries]);
  BRIGADE_SHARED(uint32_t, positions, [kWide ? kSharedEntries : 1]);
  cuda::SortEntries<Key> entries(&keys[0], &positions[0]);
  const int64_t first = static_cast<int64_t>(blockIdx.x) * rows_per_block;
  const uint32_t count = room * rows_per_block;
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t row = first + i / room;
    const uint32_t at = i % room;
    entries.set(i, row < rows && at < n ? sort_key_of(x[row * n + at], descending) : static_cast<Key>(~Key{0}), at);
  }
  __syncthreads();
  cuda::bitonic_sort(entries, count, room);
  for (uint32_t i = threadIdx.x; i < count; i += kThreads) {
    const int64_t row = first + i / room;
    const uint32_t at = i % room;
    if (row >= rows || at >= n) continue;
    const uint32_t from = entries.position(i);
    values[row * n + at] = x[row * n + from];
    indices[row * n + at] = from;
  }
}

// Writes one word of each key at `positions`; if null, of all keys, and also writes all positions.
template <class T>
__global__ void __launch_bounds__(kThreads)
    key_words_kernel(uint32_t count, int word, bool descending, const T* x, const uint32_t* positions, uint32_t* keys,
                     uint32_t* all_positions) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  const uint32_t position = positions ? positions[i] : i;
  keys[i] = static_cast<uint32_t>(static_cast<uint64_t>(sort_key_of(x[position], descending)) >> (32 * word));
  if (!positions) all_positions[i] = i;
}

__global__ void __launch_bounds__(kThreads)
    row_words_kernel(uint32_t count, uint32_t n, const uint32_t* positions, uint32_t* keys) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i < count) keys[i] = positions[i] / n;
}

template <class Bits>
__global__ void __launch_bounds__(kThreads) take_sorted_kernel(uint32_t count, uint32_t n, const uint32_t* positions,
                                                               const Bits* x, Bits* values, int64_t* indices) {
  const uint32_t i = blockIdx.x * kThreads + threadIdx.x;
  if (i >= count) return;
  values[i] = x[positions[i]];
  indices[i] = positions[i] % n;
}

// Entries to sort digit by digit, with a second buffer for the next order.
class RadixOrder {
 public:
  RadixOrder(Device device, uint32_t count)
      : device_(device),
        count_(count),
        now_{buffer(count), buffer(count)},
        next_{buffer(count), buffer(count)},
        tile_counts_(buffer(int64_t{cuda::kDigits} * cuda::blocks_for(count, cuda::kSortTile))),
        totals_(buffer(cuda::kDigits)) {}

  uint32_t* keys() const { return static_cast<uint32_t*>(now_.keys.raw_data()); }
  uint32_t* positions() const { return static_cast<uint32_t*>(now_.positions.raw_data()); }
  // Sorts by bits [first, last) of the keys.
  void sort(int first, int last) {
    for (int shift = first; shift < last; shift += cuda::kDigitBits) {
      cuda::sort_by_digit(device_, cuda::PairSource{now_.key_data(), now_.position_data()}, count_, shift, tile_counts_,
                          totals_, next_);
      std::swap(now_, next_);
    }
  }

 private:
  Tensor buffer(int64_t length) const { return empty({length}, {kInt32, device_}); }

  Device device_;
  uint32_t count_;
  cuda::SortedIndices now_, next_;
  Tensor tile_counts_, totals_;
};

// The bits in which keys of a dtype may differ. Keys of half types are made from floats.
struct KeyBits {
  int first, last;
};
KeyBits key_bits(DType dtype) {
  switch (dtype) {
    case kFloat16: return {8, 32};
    case kBFloat16: return {16, 32};
    case kUInt8:
    case kBool: return {0, 8};
    default: return {0, 32};
  }
}

template <class T>
void sort_long_rows(const Tensor& x, uint32_t n, bool descending, const Sorted& out) {
  const Device device = x.device();
  const auto count = static_cast<uint32_t>(x.numel());
  const auto rows = count / n;
  const T* const from = static_cast<const T*>(x.raw_data());
  const unsigned blocks = cuda::blocks_for(count, kThreads);
  const KeyBits bits = key_bits(x.dtype());
  RadixOrder order(device, count);
  for (int word = 0; word < static_cast<int>(sizeof(sort_key<T>) / 4); ++word) {
    cuda::launch({"sort", blocks, kThreads}, device, &key_words_kernel<T>, count, word, descending, from,
                 word == 0 ? nullptr : order.positions(), order.keys(), order.positions());
    order.sort(bits.first, bits.last);
  }
  if (rows > 1) {
    cuda::launch({"sort", blocks, kThreads}, device, &row_words_kernel, count, n, order.positions(), order.keys());
    order.sort(0, static_cast<int>(std::bit_width(rows - 1)));
  }
  auto* const indices = static_cast<int64_t*>(out.indices.raw_data());
  const auto take = [&]<class Bits>(Bits) {
    cuda::launch({"sort", blocks, kThreads}, device, &take_sorted_kernel<Bits>, count, n, order.positions(),
                 static_cast<const Bits*>(x.raw_data()), static_cast<Bits*>(out.values.raw_data()), indices);
  };
  if constexpr (sizeof(T) == 1) take(uint8_t{});
  if constexpr (sizeof(T) == 2) take(uint16_t{});
  if constexpr (sizeof(T) == 4) take(uint32_t{});
  if constexpr (sizeof(T) == 8) take(uint64_t{});
}

template <class T>
void sort_short_rows(const Tensor& x, uint32_t n, bool descending, const Sorted& out) {
  const int64_t rows = x.numel() / n;
  const uint32_t room = std::max(std::bit_ceil(n), 2U);
  const uint32_t rows_per_block = std::max(kRowEntries / room, 1U);
  cuda::launch({"sort", cuda::blocks_for(rows, rows_per_block), kThreads}, x.device(), &sort_short_rows_kernel<T>, rows,
               n, room, rows_per_block, descending, static_cast<const T*>(x.raw_data()),
               static_cast<T*>(out.values.raw_data()), static_cast<int64_t*>(out.indices.raw_data()));
}

Sorted sort_cuda(const Tensor& x, int dim, bool descending) {
  const SortPlan plan = prepare_sort(x, dim);
  if (x.numel() > 0) {
    cuda::with_rows(plan, [&](const Tensor& rows, const Sorted& out) { cuda::sort_rows(rows, descending, out); });
  }
  return plan.result;
}

const AddKernel add_sort(sort, kCUDA, &sort_cuda);

}  // namespace

void cuda::sort_rows(const Tensor& x, bool descending, const Sorted& out) {
  const int64_t n = x.sizes().back();
  constexpr int64_t kMost = (int64_t{1} << 31) - 1;
  if (n > kMost) throw ShapeError("sort: at most 2^31 - 1 elements along the dimension on a CUDA device, got {}", n);
  visit_dtype(x.dtype(), [&]<class T>() {
    if (n <= kShortRow) return sort_short_rows<T>(x, static_cast<uint32_t>(n), descending, out);
    // As many rows at once as 32-bit positions can address.
    const int64_t together = kMost / n;
    for (int64_t row = 0; row < x.sizes()[0]; row += together) {
      const auto part = [&](const Tensor& t) { return view::slice(t, 0, row, row + together); };
      sort_long_rows<T>(part(x), static_cast<uint32_t>(n), descending, {part(out.values), part(out.indices)});
    }
  });
}

}  // namespace brigade::kernels
