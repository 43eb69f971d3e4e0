// Gather, scatter and nonzero on the CPU; a thread has whole lines, so sums keep their order.
#include <brigade/kernels/gather.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/bits.h>
#include <brigade/kernels/common/gather.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
#include <vector>

namespace brigade::kernels {

namespace {

Tensor gather_cpu(const Tensor& x, int dim, const Tensor& index) {
  const GatherPlan plan = prepare_gather(x, dim, index);
  const IndexedLines& lines = plan.lines;
  const auto* const at = plan.index.data_ptr<int64_t>();
  check_indices(kGatherIndex, at, lines.elements(), lines.length);
  visit_bits(x.dtype(), [&]<class Bits>(Bits) {
    const auto* const from = static_cast<const Bits*>(plan.x.raw_data());
    auto* const to = static_cast<Bits*>(plan.result.raw_data());
    if (lines.inner == 1) {
      cpu::parallel_for(
          lines.outer * lines.count,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
              const int64_t line = i / lines.count;
              const Bits* const row = from + line * lines.length;
              for (const int64_t until = std::min(end, (line + 1) * lines.count); i < until; ++i)
                to[i] = row[at[i]];
            }
          },
          2);
      return;
    }
    cpu::parallel_for(
        lines.outer * lines.count,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const Bits* const slab = from + row / lines.count * lines.length * lines.inner;
            const int64_t* const chosen = at + row * lines.inner;
            for (int64_t k = 0; k < lines.inner; ++k)
              to[row * lines.inner + k] = slab[chosen[k] * lines.inner + k];
          }
        },
        2 * lines.inner);
  });
  return plan.result;
}

// Calls move(target, source, length) for runs of elements; offsets into the part and into [outer,
// count, inner]. A thread has all of a line, or all of a strip of lines that lie beside each other:
// what several indices name is met in their order.
template <class Move>
void for_targets(const ScatterPlan& plan, Move move) {
  const IndexedLines lines = plan.lines;
  if (lines.elements() == 0) return;
  constexpr int64_t kStrip = 64;
  const int64_t strips = (lines.inner + kStrip - 1) / kStrip;
  const auto* const at = plan.index.data_ptr<int64_t>();
  cpu::parallel_for(
      lines.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end;) {
          // Neighbouring strips of one thread are one.
          const int64_t o = task / strips;
          const int64_t until = std::min(end, (o + 1) * strips);
          const int64_t first = task % strips * kStrip;
          const int64_t last = std::min(lines.inner, first + (until - task) * kStrip);
          task = until;
          for (int64_t j = 0; j < lines.count; ++j) {
            const int64_t row = (o * lines.count + j) * lines.inner;
            if (plan.slices) {
              move((o * lines.length + at[j]) * lines.inner + first, row + first, last - first);
              continue;
            }
            for (int64_t k = first; k < last; ++k)
              move((o * lines.length + at[row + k]) * lines.inner + k, row + k, int64_t{1});
          }
        }
      },
      2 * lines.count * std::min(kStrip, lines.inner));
}

template <class C>
void add_lines(const ScatterPlan& plan, const Tensor& part, const Tensor& source) {
  auto* const to = part.data_ptr<C>();
  const auto* const from = source.data_ptr<C>();
  for_targets(plan, [=](int64_t target, int64_t place, int64_t length) {
    for (int64_t k = 0; k < length; ++k)
      to[target + k] = static_cast<C>(to[target + k] + from[place + k]);
  });
}

void add_source(const ScatterPlan& plan) {
  switch (plan.part.dtype()) {
    case kFloat64: return add_lines<double>(plan, plan.part, plan.source);
    case kFloat32: return add_lines<float>(plan, plan.part, plan.source);
    case kInt64: return add_lines<int64_t>(plan, plan.part, plan.source);
    case kInt32: return add_lines<int32_t>(plan, plan.part, plan.source);
    case kUInt8: return add_lines<uint8_t>(plan, plan.part, plan.source);
    default: break;
  }
  const Tensor wide = cast(plan.part, kFloat32);
  add_lines<float>(plan, wide, cast(plan.source, kFloat32));
  copy(plan.part, wide);
}

Tensor scatter_cpu(const Tensor& x, int dim, const Tensor& index, const Scatter& how) {
  const ScatterPlan plan = prepare_scatter(x, dim, index, how);
  check_indices(*plan.role, plan.index.data_ptr<int64_t>(), plan.index.numel(), plan.lines.length);
  if (how.add) {
    add_source(plan);
    return plan.finished();
  }
  visit_bits(x.dtype(), [&]<class Bits>(Bits) {
    auto* const to = static_cast<Bits*>(plan.part.raw_data());
    if (plan.source.defined()) {
      const auto* const from = static_cast<const Bits*>(plan.source.raw_data());
      for_targets(
          plan, [=](int64_t target, int64_t place, int64_t length) { std::copy_n(from + place, length, to + target); });
    } else {
      const uint64_t word = bits_of(how.value, x.dtype());
      Bits bits;
      std::memcpy(&bits, &word, sizeof(Bits));
      for_targets(plan, [=](int64_t target, int64_t, int64_t length) { std::fill_n(to + target, length, bits); });
    }
  });
  return plan.finished();
}

// Blocks of fixed length are counted, then written, by any thread.
Tensor nonzero_cpu(const Tensor& x) {
  constexpr int64_t kBlock = 16384;
  const Tensor dense = contiguous(x);
  const int64_t count = x.numel();
  const int64_t blocks = (count + kBlock - 1) / kBlock;
  std::vector<int64_t> first(static_cast<size_t>(blocks) + 1, 0);
  Tensor result;
  visit_dtype(x.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    const T* const values = static_cast<const T*>(dense.raw_data());
    cpu::parallel_for(
        blocks,
        [&](int64_t begin, int64_t end) {
          for (int64_t block = begin; block < end; ++block) {
            int64_t found = 0;
            for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i)
              found += static_cast<C>(values[i]) != C(0) ? 1 : 0;
            first[static_cast<size_t>(block) + 1] = found;
          }
        },
        kBlock);
    for (size_t block = 1; block < first.size(); ++block)
      first[block] += first[block - 1];
    const int dims = x.dim();
    result = empty({first.back(), dims}, kInt64);
    auto* const out = result.data_ptr<int64_t>();
    cpu::parallel_for(
        blocks,
        [&](int64_t begin, int64_t end) {
          for (int64_t block = begin; block < end; ++block) {
            int64_t* to = out + first[static_cast<size_t>(block)] * dims;
            for (int64_t i = block * kBlock; i < std::min(count, (block + 1) * kBlock); ++i) {
              if (!(static_cast<C>(values[i]) != C(0))) continue;
              int64_t rest = i;
              for (int d = dims - 1; d > 0; --d) {
                to[d] = rest % x.sizes()[d];
                rest /= x.sizes()[d];
              }
              if (dims > 0) to[0] = rest;
              to += dims;
            }
          }
        },
        kBlock);
  });
  return result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, int, const Tensor&)> gather("gather", &gather_cpu);
constinit Kernel<Tensor(const Tensor&, int, const Tensor&, const Scatter&)> scatter("scatter", &scatter_cpu);
constinit Kernel<Tensor(const Tensor&)> nonzero("nonzero", &nonzero_cpu);

}  // namespace brigade::kernels
