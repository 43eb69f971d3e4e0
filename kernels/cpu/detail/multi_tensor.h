// Loops over many tensors as if they were one: threads take pieces of a few KiB, so that the time depends on the number
// of elements, not of tensors. (On a GPU: cuda/detail/multi_tensor.h.)
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/optimizer.h>

#include <initializer_list>
#include <span>
#include <vector>

namespace brigade::kernels::cpu {

inline constexpr int64_t kPiece = 4096;  // elements; a multiple of a cache line in every dtype

// Calls body(row, begin, end) for ranges that cover [0, numel) of each row, numel = numels[row], and begin on multiples
// of kPiece. `cost`: the work per element, in cheap elements.
template <class Body>
void for_pieces(std::span<const int64_t> numels, Body&& body, int64_t cost = 1) {
  std::vector<int64_t> first(numels.size() + 1);  // piece of each row
  int64_t work = 0;
  for (size_t row = 0; row < numels.size(); ++row) {
    first[row + 1] = first[row] + (numels[row] + kPiece - 1) / kPiece;
    work += numels[row];
  }
  const int64_t pieces = first.back();
  const auto run = [&](int64_t begin, int64_t end) {
    size_t row = static_cast<size_t>(std::upper_bound(first.begin(), first.end(), begin) - first.begin()) - 1;
    for (; begin < end; ++row) {
      const int64_t last = std::min(end, first[row + 1]);
      if (begin == last) continue;
      body(row, (begin - first[row]) * kPiece, std::min(numels[row], (last - first[row]) * kPiece));
      begin = last;
    }
  };
  const int threads = static_cast<int>(std::min<int64_t>(threads_for(work * cost, kGrain), pieces));
  if (threads <= 1) {
    run(0, pieces);
    return;
  }
#ifdef _OPENMP
#pragma omp parallel num_threads(threads)
  {
    const int64_t count = omp_get_num_threads();
    const int64_t me = omp_get_thread_num();
    run(pieces * me / count, pieces * (me + 1) / count);
  }
#endif
}

// An optimizer's step over the rows of `lists`: the parameters, then one list for each further array; already checked,
// contiguous, of one dtype. `floats` is the step in float32, which is also the compute type of the half types;
// update_rows_of_doubles takes the step in float64.
void update_rows(std::initializer_list<std::span<const Tensor>> lists, const FloatUpdate& floats);
template <class Update>
void update_rows_of_doubles(std::initializer_list<std::span<const Tensor>> lists, const Update& update) {
  const std::span<const Tensor> params = *lists.begin();
  std::vector<int64_t> numels;
  for (const Tensor& param : params)
    numels.push_back(param.numel());
  const auto body = [&](size_t row, int64_t begin, int64_t end) {
    double* arrays[Update::kArrays];
    for (size_t a = 0; a < Update::kArrays; ++a)
      arrays[a] = lists.begin()[a][row].template data_ptr<double>();
    for (int64_t i = begin; i < end; ++i) {
      double v[Update::kArrays];
      for (size_t a = 0; a < Update::kArrays; ++a)
        v[a] = arrays[a][i];
      update(v);
      for (size_t a = 0; a < Update::kArrays; ++a) {
        if (a != 1) arrays[a][i] = v[a];  // the gradient is not written
      }
    }
  };
  for_pieces(numels, body, 2);
}
// Runs the step that `make` returns for the compute type of the parameters.
template <class Make>
void update_rows(std::initializer_list<std::span<const Tensor>> lists, Make make) {
  if ((*lists.begin()).front().dtype() == kFloat64) {
    update_rows_of_doubles(lists, make.template operator()<double>());
  } else {
    update_rows(lists, FloatUpdate(make.template operator()<float>()));
  }
}

}  // namespace brigade::kernels::cpu
