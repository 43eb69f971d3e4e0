// Loops over many tensors as over one: pieces of a few KiB are dealt out to the threads, so that one huge and a hundred
// tiny tensors take the time of their elements. (On a GPU: cuda/detail/multi_tensor.h.)
#pragma once

#include <brigade/core/dtype.h>
#include <brigade/core/tensor.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <array>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

namespace brigade::kernels::cpu {

inline constexpr int64_t kPiece = 4096;  // elements; a multiple of what fills a cache line in every dtype

// Calls body(row, begin, end) for ranges that cover [0, numel) of each row, numel = numels[row], and begin on multiples
// of kPiece. `cost`: how many elements of work one stands for.
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

// What an update of detail/optimizer_math.h does to elements [begin, end) of a row of arrays: block by block, while the
// block after next is fetched. (The processor's own prefetching stops at the end of each page of each array.)
template <class T, class Update, size_t... array>
void update_range(std::array<T*, sizeof...(array)> row, int64_t begin, int64_t end, Update update,
                  std::index_sequence<array...>) {
  using C = compute_type<T>;
  constexpr int64_t kLine = 64 / sizeof(T);
  constexpr int64_t kBlock = 8 * kLine;
  while (begin < end) {
    const int64_t stop = std::min(end, begin + kBlock);
#ifdef __GNUC__
    for (int64_t ahead = begin + 2 * kBlock; ahead < std::min(end, begin + 3 * kBlock); ahead += kLine)
      (__builtin_prefetch(row[array] + ahead), ...);
      // The arrays do not overlap.
#pragma GCC ivdep
#endif
    for (int64_t i = begin; i < stop; ++i) {
      C v[sizeof...(array)] = {static_cast<C>(row[array][i])...};
      update(v);
      ((array == 1 ? void() : void(row[array][i] = static_cast<T>(v[array]))), ...);
    }
    begin = stop;
  }
}

// `lists`: the parameters, then one list for each further array; checked, contiguous.
template <class T, class Update>
void update_rows(std::initializer_list<std::span<const Tensor>> lists, const Update& update) {
  constexpr size_t kArrays = Update::kArrays;
  const std::span<const Tensor> params = *lists.begin();
  std::vector<std::array<T*, kArrays>> rows(params.size());
  std::vector<int64_t> numels(params.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    numels[i] = params[i].numel();
    for (size_t a = 0; a < kArrays; ++a)
      rows[i][a] = static_cast<T*>(lists.begin()[a][i].raw_data());
  }
  const auto body = [&](size_t row, int64_t begin, int64_t end) {
    update_range<T>(rows[row], begin, end, update, std::make_index_sequence<kArrays>());
  };
  for_pieces(numels, body, 2);
}

}  // namespace brigade::kernels::cpu
