// Gather, scatter and nonzero on the CPU; each thread owns whole columns, so that sums keep their order.
#include <brigade/kernels/indexing.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
#include <vector>

namespace brigade::kernels {
namespace {

Tensor gather_cpu(const Tensor& x, int dim, const Tensor& index) {
  const GatherPlan plan = prepare_gather(x, dim, index);
  const IndexedShape& shape = plan.shape;
  const auto* const at = plan.index.data_ptr<int64_t>();
  check_indices(kGatherIndex, at, shape.elements(), shape.length);
  visit_bits(x.dtype(), [&]<class Bits>(Bits) {
    const auto* const from = static_cast<const Bits*>(plan.x.raw_data());
    auto* const to = static_cast<Bits*>(plan.result.raw_data());
    if (shape.inner == 1) {
      cpu::parallel_for(
          shape.outer * shape.count,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin; i < end;) {
              const int64_t o = i / shape.count;
              const Bits* const row = from + o * shape.length;
              for (const int64_t until = std::min(end, (o + 1) * shape.count); i < until; ++i)
                to[i] = row[at[i]];
            }
          },
          2);
      return;
    }
    cpu::parallel_for(
        shape.outer * shape.count,
        [&](int64_t begin, int64_t end) {
          for (int64_t row = begin; row < end; ++row) {
            const Bits* const slab = from + row / shape.count * shape.length * shape.inner;
            const int64_t* const chosen = at + row * shape.inner;
            for (int64_t k = 0; k < shape.inner; ++k)
              to[row * shape.inner + k] = slab[chosen[k] * shape.inner + k];
          }
        },
        2 * shape.inner);
  });
  return plan.result;
}

// Calls move(target, source, length) for runs of elements; offsets into the part and into [outer, count, inner]. Each
// thread owns whole columns, in strips of adjacent ones, so that duplicate indices are processed in order.
template <class Move>
void for_targets(const ScatterPlan& plan, Move move) {
  const IndexedShape shape = plan.shape;
  if (shape.elements() == 0) return;
  constexpr int64_t kStrip = 64;
  const int64_t strips = (shape.inner + kStrip - 1) / kStrip;
  const auto* const at = plan.index.data_ptr<int64_t>();
  cpu::parallel_for(
      shape.outer * strips,
      [&](int64_t begin, int64_t end) {
        for (int64_t task = begin; task < end;) {
          // Merge adjacent strips of one thread.
          const int64_t o = task / strips;
          const int64_t until = std::min(end, (o + 1) * strips);
          const int64_t first = task % strips * kStrip;
          const int64_t last = std::min(shape.inner, first + (until - task) * kStrip);
          task = until;
          for (int64_t j = 0; j < shape.count; ++j) {
            const int64_t row = (o * shape.count + j) * shape.inner;
            if (plan.slices) {
              move((o * shape.length + at[j]) * shape.inner + first, row + first, last - first);
              continue;
            }
            for (int64_t k = first; k < last; ++k)
              move((o * shape.length + at[row + k]) * shape.inner + k, row + k, int64_t{1});
          }
        }
      },
      2 * shape.count * std::min(kStrip, shape.inner));
}

template <class C>
void add_in(const ScatterPlan& plan, const Tensor& part, const Tensor& source) {
  auto* const to = part.data_ptr<C>();
  const auto* const from = source.data_ptr<C>();
  for_targets(plan, [=](int64_t target, int64_t place, int64_t length) {
    for (int64_t k = 0; k < length; ++k)
      to[target + k] = static_cast<C>(to[target + k] + from[place + k]);
  });
}

void add_source(const ScatterPlan& plan) {
  switch (plan.part.dtype()) {
    case kFloat64: return add_in<double>(plan, plan.part, plan.source);
    case kFloat32: return add_in<float>(plan, plan.part, plan.source);
    case kInt64: return add_in<int64_t>(plan, plan.part, plan.source);
    case kInt32: return add_in<int32_t>(plan, plan.part, plan.source);
    case kUInt8: return add_in<uint8_t>(plan, plan.part, plan.source);
    default: break;
  }
  const Tensor wide = cast(plan.part, kFloat32);
  add_in<float>(plan, wide, cast(plan.source, kFloat32));
  copy(plan.part, wide);
}

Tensor scatter_cpu(const Tensor& x, int dim, const Tensor& index, const Scatter& how) {
  const ScatterPlan plan = prepare_scatter(x, dim, index, how);
  check_indices(*plan.role, plan.index.data_ptr<int64_t>(), plan.index.numel(), plan.shape.length);
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

// Blocks of fixed length are counted, then written, in parallel.
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
