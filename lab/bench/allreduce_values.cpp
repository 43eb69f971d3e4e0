// The value that a rank gives and the one that comes out, at each position of a tensor.
#include <brigade/lab/bench/allreduce_values.h>

#include <algorithm>
#include <memory>

namespace brigade::lab {

namespace {

int period(int ranks) { return ranks + 1; }

template <class T>
int contribution(int rank, int position) {
  return (std::is_same_v<T, bool> ? 0 : 1) + (rank == position ? 1 : 0);
}

template <class T>
T reduced(dist::ReduceOp op, int position, int ranks) {
  using C = compute_type<T>;
  int sum = 0, most = 0, least = 2;
  for (int rank = 0; rank < ranks; ++rank) {
    const int value = contribution<T>(rank, position);
    sum += value;
    most = std::max(most, value);
    least = std::min(least, value);
  }
  switch (op) {
    case dist::ReduceOp::Max: return static_cast<T>(static_cast<C>(most));
    case dist::ReduceOp::Min: return static_cast<T>(static_cast<C>(least));
    case dist::ReduceOp::Sum: return static_cast<T>(static_cast<C>(sum));
    case dist::ReduceOp::Avg: break;
  }
  return static_cast<T>(static_cast<C>(static_cast<C>(sum) * static_cast<C>(1.0 / ranks)));
}

}  // namespace

void fill_contribution(const Tensor& tensor, int rank, int ranks) {
  visit_dtype(tensor.dtype(), [&]<class T>() {
    T* const data = static_cast<T*>(tensor.raw_data());
    const int repeat = period(ranks);
    int position = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      data[i] = static_cast<T>(static_cast<compute_type<T>>(contribution<T>(rank, position)));
      if (++position == repeat) position = 0;
    }
  });
}

int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks) {
  return visit_dtype(tensor.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    const int repeat = period(ranks);
    const auto expected = std::make_unique<C[]>(static_cast<size_t>(repeat));
    for (int position = 0; position < repeat; ++position)
      expected[static_cast<size_t>(position)] = static_cast<C>(reduced<T>(op, position, ranks));
    const T* const data = static_cast<const T*>(tensor.raw_data());
    int64_t wrong = 0;
    int position = 0;
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      wrong += static_cast<C>(data[i]) != expected[static_cast<size_t>(position)];
      if (++position == repeat) position = 0;
    }
    return wrong;
  });
}

}  // namespace brigade::lab
