// The contributed and the expected value at each position of a tensor.
#include <brigade/lab/bench/collectives/collective.h>

#include <algorithm>
#include <memory>

namespace brigade::lab::bench {
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

// Calls visit(i, position) for each element.
template <class Visit>
void for_each_position(int64_t count, int ranks, int64_t first, Visit visit) {
  int position = static_cast<int>(first % period(ranks));
  for (int64_t i = 0; i < count; ++i) {
    visit(i, position);
    if (++position == period(ranks)) position = 0;
  }
}

// expected(position) is the correct value.
template <class T, class Expected>
int64_t count_others(const Tensor& tensor, int ranks, int64_t first, Expected expected) {
  using C = compute_type<T>;
  const auto table = std::make_unique<C[]>(static_cast<size_t>(period(ranks)));
  for (int position = 0; position < period(ranks); ++position)
    table[static_cast<size_t>(position)] = static_cast<C>(expected(position));
  const T* const data = static_cast<const T*>(tensor.raw_data());
  int64_t wrong = 0;
  for_each_position(tensor.numel(), ranks, first, [&](int64_t i, int position) {
    wrong += static_cast<C>(data[i]) != table[static_cast<size_t>(position)];
  });
  return wrong;
}

}  // namespace

void fill_contribution(const Tensor& tensor, int rank, int ranks, int64_t first) {
  visit_dtype(tensor.dtype(), [&]<class T>() {
    T* const data = static_cast<T*>(tensor.raw_data());
    for_each_position(tensor.numel(), ranks, first, [&](int64_t i, int position) {
      data[i] = static_cast<T>(static_cast<compute_type<T>>(contribution<T>(rank, position)));
    });
  });
}

int64_t count_wrong(const Tensor& tensor, dist::ReduceOp op, int ranks, int64_t first) {
  return visit_dtype(tensor.dtype(), [&]<class T>() {
    return count_others<T>(tensor, ranks, first, [&](int position) { return reduced<T>(op, position, ranks); });
  });
}

int64_t count_wrong_copies(const Tensor& tensor, int rank, int ranks, int64_t first) {
  return visit_dtype(tensor.dtype(), [&]<class T>() {
    return count_others<T>(tensor, ranks, first, [&](int position) {
      return static_cast<T>(static_cast<compute_type<T>>(contribution<T>(rank, position)));
    });
  });
}

}  // namespace brigade::lab::bench
