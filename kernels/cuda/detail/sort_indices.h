// Sorts positions by the index at each position, equal indices in the order of the positions.
//
// A radix sort from the lowest digit of 8 bits to the highest (as many as the largest index has). For each digit, every
// tile of 2048 entries counts its digits; a prefix sum over digits and tiles turns the counts into places; every tile
// moves its entries there. In a tile each warp owns a range and walks it 32 entries at a time; lanes with the same
// digit find each other by ballots, so that the order does not depend on timing and no atomics are needed. (After the
// scan-based radix sort of Satish, Harris and Garland, "Designing efficient sorting algorithms for manycore GPUs",
// 2009.)
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>

#include <algorithm>
#include <bit>

namespace brigade::kernels::cuda {

inline constexpr int kSortThreads = 256;
inline constexpr int kDigits = 256;  // one per thread
inline constexpr int kDigitBits = 8;
inline constexpr int kSortWarps = kSortThreads / kWarp;
inline constexpr uint32_t kWarpEntries = 256;
inline constexpr uint32_t kSortTile = kWarpEntries * kSortWarps;

// The input of a pass: the indices in the first pass, with bad ones as `rows`, after all others; then pairs.
struct IndexSource {
  const int64_t* indices;
  uint32_t rows;
  IndexCheck check;
  __device__ uint32_t key(uint32_t i) const {
    return check.is_good(indices[i]) ? static_cast<uint32_t>(indices[i]) : rows;
  }
  __device__ uint32_t position(uint32_t i) const {
    check(indices[i], i);
    return i;
  }
};
struct PairSource {
  const uint32_t* keys;
  const uint32_t* positions;
  __device__ uint32_t key(uint32_t i) const { return keys[i]; }
  __device__ uint32_t position(uint32_t i) const { return positions[i]; }
};

// The lanes of a full warp that are `active` and have this lane's digit.
__device__ inline unsigned same_digit(uint32_t digit, bool active) {
  unsigned lanes = __ballot_sync(kFullWarp, active);
  for (int bit = 0; bit < kDigitBits; ++bit) {
    const bool set = (digit >> bit & 1U) != 0;
    const unsigned those = __ballot_sync(kFullWarp, set);
    lanes &= set ? those : ~those;
  }
  return lanes;
}

// Walks this warp's range in order. Each entry increments one of the warp's `counters` (one per digit). Before that,
// visit(i, place) is called, where `place` is the value that the counter of entry i's digit would have if entries were
// counted one by one.
template <class Source, class Visit>
__device__ void for_entries(const Source& source, uint32_t count, int shift, uint32_t* counters, Visit visit) {
  const unsigned lane = threadIdx.x % kWarp;
  const uint32_t begin = blockIdx.x * kSortTile + threadIdx.x / kWarp * kWarpEntries;
  for (uint32_t step = 0; step < kWarpEntries; step += kWarp) {
    const uint32_t i = begin + step + lane;
    const bool active = i < count;
    const uint32_t digit = active ? source.key(i) >> shift & (kDigits - 1U) : 0;
    const unsigned lanes = same_digit(digit, active);
    if (active) visit(i, counters[digit] + static_cast<uint32_t>(__popc(lanes & ((1U << lane) - 1))));
    __syncwarp();
    if (active && lanes >> lane == 1) counters[digit] += static_cast<uint32_t>(__popc(lanes));  // last lane
    __syncwarp();
  }
}

// counts[w][d]: entries of warp w with digit d.
template <class Source>
__device__ void count_digits(const Source& source, uint32_t count, int shift, uint32_t (&counts)[kSortWarps][kDigits]) {
  for (int w = 0; w < kSortWarps; ++w)
    counts[w][threadIdx.x] = 0;
  __syncthreads();
  for_entries(source, count, shift, counts[threadIdx.x / kWarp], [](uint32_t, uint32_t) {});
  __syncthreads();
}

// The sum of the values of the threads before this one; `partial` has space for one value per warp, and may be reused
// after the call. Every thread gets the sum over the block in `total`.
__device__ inline uint32_t block_exclusive_sum(uint32_t value, uint32_t* partial, uint32_t& total) {
  uint32_t sum = value;
  const unsigned lane = threadIdx.x % kWarp;
  for (unsigned offset = 1; offset < kWarp; offset *= 2) {
    const uint32_t before = __shfl_up_sync(kFullWarp, sum, offset);
    if (lane >= offset) sum += before;
  }
  if (lane == kWarp - 1) partial[threadIdx.x / kWarp] = sum;
  __syncthreads();
  uint32_t base = 0;
  total = 0;
  for (unsigned w = 0; w < kSortWarps; ++w) {
    base += w < threadIdx.x / kWarp ? partial[w] : 0;
    total += partial[w];
  }
  __syncthreads();
  return base + sum - value;
}

// tile_counts [kDigits][tiles]
template <class Source>
__global__ void __launch_bounds__(kSortThreads)
    count_digits_kernel(Source source, uint32_t count, int shift, uint32_t* tile_counts) {
  BRIGADE_SHARED(uint32_t, counts, [kSortWarps][kDigits]);
  count_digits(source, count, shift, counts);
  uint32_t sum = 0;
  for (int w = 0; w < kSortWarps; ++w)
    sum += counts[w][threadIdx.x];
  tile_counts[threadIdx.x * gridDim.x + blockIdx.x] = sum;
}

// One block per digit: replaces its counts by their exclusive sums over the tiles, and stores their sum to
// totals[digit].
static __global__ void __launch_bounds__(kSortThreads)
    sum_digits_kernel(uint32_t tiles, uint32_t* tile_counts, uint32_t* totals) {
  BRIGADE_SHARED(uint32_t, partial, [kSortWarps]);
  uint32_t* const row = tile_counts + blockIdx.x * tiles;
  uint32_t base = 0;
  for (uint32_t first = 0; first < tiles; first += kSortThreads) {
    const uint32_t tile = first + threadIdx.x;
    uint32_t total = 0;
    const uint32_t before = block_exclusive_sum(tile < tiles ? row[tile] : 0, &partial[0], total);
    if (tile < tiles) row[tile] = base + before;
    base += total;
  }
  if (threadIdx.x == 0) totals[blockIdx.x] = base;
}

// A single tile computes all counts itself.
template <class Source>
__global__ void __launch_bounds__(kSortThreads)
    move_entries_kernel(Source source, uint32_t count, int shift, const uint32_t* tiles_before, const uint32_t* totals,
                        uint32_t* keys, uint32_t* positions) {
  BRIGADE_SHARED(uint32_t, places, [kSortWarps][kDigits]);
  BRIGADE_SHARED(uint32_t, partial, [kSortWarps]);
  count_digits(source, count, shift, places);
  uint32_t own = 0;
  for (int w = 0; w < kSortWarps; ++w)
    own += places[w][threadIdx.x];
  const bool alone = gridDim.x == 1;
  uint32_t all = 0;
  uint32_t place = block_exclusive_sum(alone ? own : totals[threadIdx.x], &partial[0], all);
  if (!alone) place += tiles_before[threadIdx.x * gridDim.x + blockIdx.x];
  for (int w = 0; w < kSortWarps; ++w) {
    const uint32_t entries = places[w][threadIdx.x];
    places[w][threadIdx.x] = place;
    place += entries;
  }
  __syncthreads();
  for_entries(source, count, shift, places[threadIdx.x / kWarp], [&](uint32_t i, uint32_t to) {
    keys[to] = source.key(i);
    positions[to] = source.position(i);
  });
}

struct SortedIndices {
  Tensor keys, positions;  // of uint32
  const uint32_t* key_data() const { return static_cast<const uint32_t*>(keys.raw_data()); }
  const uint32_t* position_data() const { return static_cast<const uint32_t*>(positions.raw_data()); }
};

template <class Source>
void sort_by_digit(Device device, const Source& source, uint32_t count, int shift, const Tensor& tile_counts,
                   const Tensor& totals, const SortedIndices& out) {
  const unsigned tiles = blocks_for(count, kSortTile);
  auto* const counts = static_cast<uint32_t*>(tile_counts.raw_data());
  auto* const sums = static_cast<uint32_t*>(totals.raw_data());
  if (tiles > 1) {
    launch({"count_digits", tiles, kSortThreads}, device, &count_digits_kernel<Source>, source, count, shift, counts);
    launch({"sum_digits", kDigits, kSortThreads}, device, &sum_digits_kernel, tiles, counts, sums);
  }
  launch({"move_entries", tiles, kSortThreads}, device, &move_entries_kernel<Source>, source, count, shift, counts,
         sums, static_cast<uint32_t*>(out.keys.raw_data()), static_cast<uint32_t*>(out.positions.raw_data()));
}

// `indices` is dense; at most 2^31 - 1 indices and rows. Bad indices are reported to `check` and sorted to the end with
// key `rows`.
inline SortedIndices sort_indices(const Tensor& indices, int64_t rows, const IndexCheck& check) {
  const Device device = indices.device();
  const int64_t count = indices.numel();
  const auto buffer = [&](int64_t length) { return empty({length}, {kInt32, device}); };
  SortedIndices from{buffer(count), buffer(count)};
  SortedIndices to{buffer(count), buffer(count)};
  const Tensor tile_counts = buffer(count > kSortTile ? int64_t{kDigits} * blocks_for(count, kSortTile) : 0);
  const Tensor totals = buffer(kDigits);
  const auto key_count = static_cast<uint32_t>(rows);
  const auto entries = static_cast<uint32_t>(count);
  const int bits = std::max(1, static_cast<int>(std::bit_width(key_count)));
  const IndexSource first{static_cast<const int64_t*>(indices.raw_data()), key_count, check};
  sort_by_digit(device, first, entries, 0, tile_counts, totals, to);
  for (int shift = kDigitBits; shift < bits; shift += kDigitBits) {
    std::swap(from, to);
    sort_by_digit(device, PairSource{from.key_data(), from.position_data()}, entries, shift, tile_counts, totals, to);
  }
  brigade::cuda::throw_reported_if_blocking(device.index);
  return to;
}

// The first position whose key is not below `key`.
__device__ inline uint32_t lower_bound(const uint32_t* keys, uint32_t begin, uint32_t end, uint32_t key) {
  while (begin < end) {
    const uint32_t middle = begin + (end - begin) / 2;
    if (keys[middle] < key) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace brigade::kernels::cuda
