// Optimizer steps: one block per piece of a parameter (multi_tensor.h), 16 bytes of each of its tensors per thread and
// iteration.
#pragma once

#include <brigade/kernels/cuda/detail/multi_tensor.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace brigade::kernels::cuda {

// Update: kernels/common/optimizer_math.h. An update that may be skipped has begin().
template <class T, class Update>
__global__ void __launch_bounds__(kMultiThreads) update_kernel(MultiTable<Update::kArrays> table, Update update) {
  using C = compute_type<T>;
  constexpr int kArrays = Update::kArrays;
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  if constexpr (requires { update.begin(); }) {
    if (!update.begin()) return;
  }
  const Piece piece = table.piece();
  T* row[kArrays];
  bool vectors = true;
#pragma unroll
  for (int a = 0; a < kArrays; ++a) {
    row[a] = table.template at<T>(a, piece.row);
    vectors = vectors && is_aligned(row[a], kLength);
  }
  // One iteration at a time: the arrays give enough loads in flight.
  for_vectors<kLength, 1>(piece, [&](auto, int64_t at) {
    Vector<T, kLength> x[kArrays];
#pragma unroll
    for (int a = 0; a < kArrays; ++a)
      x[a] = load_padded<kLength>(row[a], at, piece.end, vectors);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      C v[kArrays];
#pragma unroll
      for (int a = 0; a < kArrays; ++a)
        v[a] = static_cast<C>(x[a].values[k]);
      update(v);
#pragma unroll
      for (int a = 0; a < kArrays; ++a)
        x[a].values[k] = static_cast<T>(v[a]);
    }
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      if (a != 1) store_padded<kLength>(row[a], at, piece.end, vectors, x[a]);
    }
  });
}

// `lists`: the parameters, then one list for each further array.
template <class T, class Update>
void update_rows(const char* name, std::initializer_list<std::span<const Tensor>> lists, const Update& update) {
  constexpr int kArrays = Update::kArrays;
  const std::span<const Tensor> params = *lists.begin();
  std::vector<MultiRow<kArrays>> rows(params.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].numel = params[i].numel();
    for (size_t a = 0; a < kArrays; ++a)
      rows[i].data[a] = lists.begin()[a][i].raw_data();
  }
  for_tables<kArrays>(rows, [&](const MultiTable<kArrays>& table) {
    launch({name, static_cast<unsigned>(table.pieces), kMultiThreads}, params.front().device(),
           &update_kernel<T, Update>, table, update);
  });
}

}  // namespace brigade::kernels::cuda
