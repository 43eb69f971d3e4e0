// Divides elements into shares of equal numbers of cache lines.
#include <brigade/dist/groups/arithmetic.h>

#include <brigade/dist/groups/slot_sums.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <algorithm>

namespace brigade::dist::shm {

std::pair<int64_t, int64_t> share_of(int rank, int size, int64_t count, DType dtype) {
  const int64_t cache_line = 64 / static_cast<int64_t>(itemsize(dtype));
  const int64_t cache_lines = (count + cache_line - 1) / cache_line;
  return {std::min(count, cache_lines * rank / size * cache_line),
          std::min(count, cache_lines * (rank + 1) / size * cache_line)};
}

namespace {

// Two ranks' floats: reduces and measures in one pass.
void reduce_and_measure_pair(SlotSums::Measuring measuring, std::span<void* const> ranks, float factor, int64_t end) {
  auto* one = static_cast<float*>(ranks[0]);
  auto* other = static_cast<float*>(ranks[1]);
  while (measuring.next(end)) {
    float* a = one + measuring.from();
    float* b = other + measuring.from();
    const int64_t n = measuring.to() - measuring.from();
    if (measuring.is_wanted()) {
      const auto found = kernels::cpu::add_and_measure_pair(a, b, factor, a, b, n);
      measuring.add(0, found.first);
      measuring.add(1, found.second);
    } else {
      kernels::cpu::add_pair(a, b, factor, a, b, n);
    }
  }
  measuring.finish();
}

}  // namespace

void reduce_share(int rank, std::span<void* const> ranks, int64_t count, DType dtype, ReduceOp op,
                  const SlotSums* sums) {
  const auto [begin, end] = share_of(rank, static_cast<int>(ranks.size()), count, dtype);
  if (begin >= end) return;
  if (!sums || !sums->taken()) return reduce_elements(ranks, ranks, dtype, op, begin, end);
  SlotSums::Measuring measuring(*sums, ranks, begin, end);
  if (ranks.size() == 2 && dtype == kFloat32 && (op == ReduceOp::Sum || op == ReduceOp::Avg))
    return reduce_and_measure_pair(measuring, ranks, op == ReduceOp::Avg ? 0.5F : 1.0F, end);
  // Measured elements are still in the L1 cache when they are reduced.
  constexpr int64_t kBlockBytes = 16 << 10;
  const int64_t block = kBlockBytes / static_cast<int64_t>(itemsize(dtype));
  for (int64_t at = begin; at < end; at += block) {
    const int64_t limit = std::min(end, at + block);
    while (measuring.next(limit))
      measuring.measure();
    reduce_elements(ranks, ranks, dtype, op, at, limit);
  }
  measuring.finish();
}

}  // namespace brigade::dist::shm
