// Entries of a key and a position, sorted in shared memory by Batcher's bitonic network ("Sorting networks and their
// applications", 1968): compares and exchanges entries at fixed places, so that the order does not depend on timing.
// All entries differ in their position, which makes the sort stable.
#pragma once

#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>

namespace brigade::kernels::cuda {

// A 32-bit key above a 32-bit position in one word, or separate arrays of 64-bit keys and positions.
template <class Key>
class SortEntries;

template <>
class SortEntries<uint32_t> {
 public:
  __device__ SortEntries(uint64_t* words, uint32_t*) : words_(words) {}
  __device__ void set(uint32_t i, uint32_t key, uint32_t position) {
    words_[i] = static_cast<uint64_t>(key) << 32 | position;
  }
  __device__ uint32_t position(uint32_t i) const { return static_cast<uint32_t>(words_[i]); }
  // Orders two entries, ascending or descending.
  __device__ void order(uint32_t i, uint32_t j, bool ascending) {
    const uint64_t a = words_[i];
    const uint64_t b = words_[j];
    if ((b < a) != ascending) return;
    words_[i] = b;
    words_[j] = a;
  }

 private:
  uint64_t* words_;
};

template <>
class SortEntries<uint64_t> {
 public:
  __device__ SortEntries(uint64_t* keys, uint32_t* positions) : keys_(keys), positions_(positions) {}
  __device__ void set(uint32_t i, uint64_t key, uint32_t position) {
    keys_[i] = key;
    positions_[i] = position;
  }
  __device__ uint32_t position(uint32_t i) const { return positions_[i]; }
  __device__ void order(uint32_t i, uint32_t j, bool ascending) {
    const uint64_t a = keys_[i];
    const uint64_t b = keys_[j];
    const uint32_t at_a = positions_[i];
    const uint32_t at_b = positions_[j];
    if ((b < a || (b == a && at_b < at_a)) != ascending) return;
    keys_[i] = b;
    keys_[j] = a;
    positions_[i] = at_b;
    positions_[j] = at_a;
  }

 private:
  uint64_t* keys_;
  uint32_t* positions_;
};

// Sorts each run of `length` (a power of two) of `count` entries, with all threads of the block. The entries must be
// visible to all threads before the call, and are after it.
template <class Key>
__device__ void bitonic_sort(SortEntries<Key> entries, uint32_t count, uint32_t length) {
  for (uint32_t size = 2; size <= length; size *= 2) {
    for (uint32_t step = size / 2; step > 0; step /= 2) {
      for (uint32_t pair = threadIdx.x; pair < count / 2; pair += blockDim.x) {
        const uint32_t i = 2 * pair - (pair & (step - 1));
        entries.order(i, i + step, (i & (length - 1) & size) == 0);
      }
      __syncthreads();
    }
  }
}

}  // namespace brigade::kernels::cuda
