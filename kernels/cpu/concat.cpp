// Concatenation on the CPU by copies into slices, index_rows as block copies, and one_hot.
#include <brigade/kernels/indexing.h>

#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

#include <cstring>

namespace brigade::kernels {
namespace {

Tensor cat_cpu(std::span<const Tensor> tensors, int dim) {
  Tensor result = prepare_cat(tensors, dim);
  int64_t at = 0;
  for (const Tensor& tensor : tensors) {
    if (adds_nothing(tensor)) continue;
    const int64_t length = tensor.sizes()[dim];
    copy(view::slice(result, dim, at, at + length), tensor);
    at += length;
  }
  return result;
}

Tensor index_rows_cpu(const Tensor& x, const Tensor& indices) {
  Tensor result = prepare_index_rows(x, indices);
  const Tensor positions = contiguous(indices);
  const auto* at = positions.data_ptr<int64_t>();
  check_indices(kSelectIndex, at, indices.numel(), x.sizes()[0]);
  const Tensor source = contiguous(x);
  if (result.numel() == 0) return result;
  const size_t row_bytes = result.nbytes() / static_cast<size_t>(indices.numel());
  const auto* from = static_cast<const char*>(source.raw_data());
  auto* to = static_cast<char*>(result.raw_data());
  cpu::parallel_for(
      indices.numel(),
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          std::memcpy(to + static_cast<size_t>(i) * row_bytes, from + static_cast<size_t>(at[i]) * row_bytes,
                      row_bytes);
        }
      },
      static_cast<int64_t>(row_bytes / 4));
  return result;
}

Tensor one_hot_cpu(const Tensor& indices, int64_t classes) {
  Tensor result = prepare_one_hot(indices, classes);
  const Tensor chosen = contiguous(indices);
  const auto* from = chosen.data_ptr<int64_t>();
  check_indices(kOneHotIndex, from, indices.numel(), classes);
  auto* to = result.data_ptr<int64_t>();
  for (int64_t i = 0; i < indices.numel(); ++i)
    to[i * classes + from[i]] = 1;
  return result;
}

}  // namespace

constinit Kernel<Tensor(std::span<const Tensor>, int)> cat("cat", &cat_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&)> index_rows("index_rows", &index_rows_cpu);
constinit Kernel<Tensor(const Tensor&, int64_t)> one_hot("one_hot", &one_hot_cpu);

}  // namespace brigade::kernels
