#include <brigade/kernels/embedding.h>

#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/detail/rows.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>
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
  visit_floating(grad.dtype(), "embedding_backward", [&]<class T>() {
    using C = compute_type<T>;
    const T* const in = static_cast<const T*>(source.raw_data());
    T* const out = static_cast<T*>(result.raw_data());
    const int64_t work = options.rows > 0 ? width * (1 + count / options.rows) : 0;
    cpu::parallel_for(
        options.rows,
        [&](int64_t begin, int64_t end) {
          std::vector<C> sum(static_cast<size_t>(width));
          for (int64_t row = begin; row < end; ++row) {
            const int64_t from = first[static_cast<size_t>(row)];
            const int64_t until = row == options.padding_idx ? from : first[static_cast<size_t>(row) + 1];
            T* const target = out + row * width;
            if (options.accumulate && from == until) continue;
            for (int64_t k = 0; k < width; ++k)
              sum[static_cast<size_t>(k)] = options.accumulate ? static_cast<C>(target[k]) : C(0);
            for (int64_t p = from; p < until; ++p) {
              const T* const added = in + positions[static_cast<size_t>(p)] * width;
              for (int64_t k = 0; k < width; ++k)
                sum[static_cast<size_t>(k)] += static_cast<C>(added[k]);
            }
            for (int64_t k = 0; k < width; ++k)
              target[k] = static_cast<T>(sum[static_cast<size_t>(k)]);
          }
        },
        work);
  });
  return result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const Tensor&)> embedding("embedding", &embedding_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const EmbeddingGrad&)> embedding_backward(
    "embedding_backward", &embedding_backward_cpu);

}  // namespace brigade::kernels
