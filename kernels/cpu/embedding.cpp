// Embedding on the CPU: rows are copied; backward adds up the gradients of each row in their order.
#include <brigade/kernels/indexing.h>

#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

namespace brigade::kernels {
namespace {

Tensor embedding_cpu(const Tensor& weight, const Tensor& indices) {
  Tensor result = prepare_embedding(weight, indices);
  const Tensor table = contiguous(weight);
  const Tensor chosen = contiguous(indices);
  const auto* const index = chosen.data_ptr<int64_t>();
  check_indices(kEmbeddingIndex, index, indices.numel(), weight.size(0));
  const auto bytes = static_cast<size_t>(weight.size(1)) * weight.itemsize();
  const auto* const from = static_cast<const char*>(table.raw_data());
  auto* const to = static_cast<char*>(result.raw_data());
  cpu::parallel_for(
      indices.numel(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i)
          std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(index[i]) * bytes, bytes);
      },
      weight.size(1));
  return result;
}

// Adds up rows, in the target itself if its type is the compute type, so that a row stays in the L1 cache.
template <class T>
class RowSum {
  using C = compute_type<T>;

 public:
  RowSum(int64_t width, bool mean) : width_(width), mean_(mean) {
    if (mean || !std::is_same_v<C, T>) sum_.resize(static_cast<size_t>(width));
  }
  // target (+)= the rows of `in` at `positions`, in their order
  void operator()(const T* in, const int64_t* positions, int64_t count, bool accumulate, T* target) {
    if (sum_.empty()) {
      if constexpr (std::is_same_v<C, T>) add_rows(in, positions, count, accumulate, target);
      return;
    }
    C* const sum = sum_.data();
    const bool before = accumulate && !mean_;
    if (before) convert(target, sum);
    add_rows(in, positions, count, before, sum);
    if (mean_) {
      for (int64_t k = 0; k < width_; ++k) {
        sum[k] = static_cast<C>(sum[k] / static_cast<C>(count));
        if (accumulate) sum[k] = static_cast<C>(sum[k] + static_cast<C>(target[k]));
      }
    }
    convert(sum, target);
  }

 private:
  void add_rows(const T* in, const int64_t* positions, int64_t count, bool accumulate, C* sum) const {
    int64_t p = 0;
    if (!accumulate && count > 0) convert(in + positions[p++] * width_, sum);
    for (; p < count; ++p) {
      const T* const added = in + positions[p] * width_;
      for (int64_t k = 0; k < width_; ++k)
        sum[k] = static_cast<C>(sum[k] + static_cast<C>(added[k]));
    }
  }
  template <class From, class To>
  void convert(const From* from, To* to) const {
    for (int64_t k = 0; k < width_; ++k)
      to[k] = static_cast<To>(from[k]);
  }

  int64_t width_;
  bool mean_;
  std::vector<C> sum_;
};

Tensor embedding_backward_cpu(const Tensor& grad, const Tensor& indices, const EmbeddingGrad& options) {
  Tensor result = prepare_embedding_backward(grad, indices, options);
  const int64_t width = result.size(1);
  const int64_t count = indices.numel();
  const Tensor chosen = contiguous(indices);
  const auto* const index = chosen.data_ptr<int64_t>();
  check_indices(kEmbeddingBackwardIndex, index, count, options.rows);
  // The positions of each row, in their order.
  std::vector<int64_t> first(static_cast<size_t>(options.rows) + 1, 0);
  for (int64_t i = 0; i < count; ++i)
    ++first[static_cast<size_t>(index[i]) + 1];
  for (size_t row = 1; row < first.size(); ++row)
    first[row] += first[row - 1];
  std::vector<int64_t> positions(static_cast<size_t>(count));
  std::vector<int64_t> next(first.begin(), first.end() - 1);
  for (int64_t i = 0; i < count; ++i)
    positions[static_cast<size_t>(next[static_cast<size_t>(index[i])]++)] = i;

  const Tensor source = contiguous(grad);
  visit_summable(grad.dtype(), [&]<class T>() {
    const T* const in = static_cast<const T*>(source.raw_data());
    T* const out = static_cast<T*>(result.raw_data());
    const bool accumulate = options.accumulate && options.out.defined();
    cpu::parallel_for(
        options.rows,
        [&](int64_t begin, int64_t end) {
          RowSum<T> sum(width, options.mean_over_positions);
          int64_t written = begin;  // rows before it hold their result
          for (int64_t row = begin; row < end; ++row) {
            const int64_t from = first[static_cast<size_t>(row)];
            const int64_t until = row == options.padding_idx ? from : first[static_cast<size_t>(row) + 1];
            if (from == until) continue;
            // Fill consecutive rows without positions with zeros at once.
            if (!accumulate) std::fill(out + written * width, out + row * width, T(0));
            sum(in, positions.data() + from, until - from, accumulate, out + row * width);
            written = row + 1;
          }
          if (!accumulate) std::fill(out + written * width, out + end * width, T(0));
        },
        options.rows > 0 ? width * (1 + count / options.rows) : 0);
  });
  return result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&)> embedding("embedding", &embedding_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const EmbeddingGrad&)> embedding_backward(
    "embedding_backward", &embedding_backward_cpu);

}  // namespace brigade::kernels
