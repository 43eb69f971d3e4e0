// Reductions give the same bits on every transport: in rank order, half types in float, rounded once.
#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

namespace brigade::test::rank_order_cases {
const Sizes kSizes = everywhere({1, 2, 3, 4}, host_layouts());

// A rank's input: random bits, with 0 in place of non-finite values.
Tensor random_bits(int rank, int64_t n, DType dtype) {
  const Tensor result = empty({n}, dtype);
  std::mt19937_64 random(static_cast<uint64_t>(rank) * 1000003 + static_cast<uint64_t>(n));
  char* bytes = static_cast<char*>(result.raw_data());
  for (size_t at = 0; at < result.nbytes(); at += sizeof(uint64_t)) {
    const uint64_t bits = random();
    std::memcpy(bytes + at, &bits, std::min(sizeof bits, result.nbytes() - at));
  }
  for (int64_t i = 0; i < n; ++i) {
    if (!std::isfinite(detail::element_as_double(result, i)))
      std::memset(bytes + static_cast<size_t>(i) * result.itemsize(), 0, result.itemsize());
  }
  return result;
}

template <class T>
T combined(T a, T b, dist::ReduceOp op) {
  switch (op) {
    case dist::ReduceOp::Max: return a > b ? a : b;
    case dist::ReduceOp::Min: return a < b ? a : b;
    default: return a + b;
  }
}

// Element by element, in T.
template <class T>
Tensor reduced_in(const std::vector<Tensor>& inputs, DType dtype, dist::ReduceOp op) {
  const Tensor result = empty({inputs[0].numel()}, dtype_of<T>);
  T* values = result.data_ptr<T>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    auto sum = static_cast<T>(detail::element_as_double(inputs[0], i));
    for (size_t r = 1; r < inputs.size(); ++r)
      sum = combined(sum, static_cast<T>(detail::element_as_double(inputs[r], i)), op);
    if (op == dist::ReduceOp::Avg) sum *= static_cast<T>(1.0 / static_cast<double>(inputs.size()));
    values[i] = sum;
  }
  if (dtype == result.dtype()) return result;
  const Tensor rounded = empty({result.numel()}, dtype);
  kernels::copy(rounded, result);
  return rounded;
}

Tensor reduced(const std::vector<Tensor>& inputs, dist::ReduceOp op) {
  const DType dtype = inputs[0].dtype();
  return dtype == kFloat64 ? reduced_in<double>(inputs, dtype, op) : reduced_in<float>(inputs, dtype, op);
}

Tensor copy_of(const Tensor& tensor) {
  const Tensor result = empty_like(tensor);
  kernels::copy(result, tensor);
  return result;
}

std::string compare(const Tensor& got, const Tensor& expected) {
  for (int64_t i = 0; i < got.numel(); ++i) {
    const size_t at = static_cast<size_t>(i) * got.itemsize();
    if (std::memcmp(static_cast<const char*>(got.raw_data()) + at, static_cast<const char*>(expected.raw_data()) + at,
                    got.itemsize()) != 0)
      return fmt::format("element {} of {} is {}, expected {}", i, got.numel(), detail::element_as_double(got, i),
                         detail::element_as_double(expected, i));
  }
  return "";
}

std::string check_bits(const dist::ProcessGroupPtr& group) {
  const auto ranks = static_cast<int64_t>(group->size());
  for (const DType dtype : {kFloat64, kFloat32, kFloat16, kBFloat16}) {
    // Sent whole; in parts of one piece; in parts of several pieces, the last of which is short.
    for (const int64_t part : {1, 37, 9001, 140003}) {
      if (part > 100000 && dtype != kFloat32) continue;
      std::vector<Tensor> inputs;
      for (int r = 0; r < group->size(); ++r)
        inputs.push_back(random_bits(r, ranks * part, dtype));
      for (const dist::ReduceOp op :
           {dist::ReduceOp::Sum, dist::ReduceOp::Avg, dist::ReduceOp::Max, dist::ReduceOp::Min}) {
        if (part > 100000 && op != dist::ReduceOp::Sum) continue;
        const Tensor expected = reduced(inputs, op);
        const Tensor all = copy_of(inputs[static_cast<size_t>(group->rank())]);
        group->all_reduce(all, {.op = op})->wait();
        std::string wrong = compare(all, expected);
        if (!wrong.empty()) return fmt::format("all_reduce {} of {}: {}", name(op), name(dtype), wrong);

        const Tensor mine = view::slice(expected, 0, group->rank() * part, (group->rank() + 1) * part);
        const Tensor output = empty({part}, dtype);
        group->reduce_scatter(output, inputs[static_cast<size_t>(group->rank())], {.op = op})->wait();
        wrong = compare(output, mine);
        if (!wrong.empty()) return fmt::format("reduce_scatter {} of {}: {}", name(op), name(dtype), wrong);
      }
    }
  }
  return "";
}
const AddRankCase add_bits("reductions of random bits are those in rank order, bit for bit", &check_bits, kSizes);

std::string check_range(const dist::ProcessGroupPtr& group) {
  const auto ranks = static_cast<int64_t>(group->size());
  for (const int64_t part : {8, 40000}) {
    const Tensor all = empty({ranks * part}, kFloat16);
    kernels::fill(all, 40000.0);
    const Tensor output = empty({part}, kFloat16);
    group->reduce_scatter(output, all, {.op = dist::ReduceOp::Avg})->wait();
    group->all_reduce(all, {.op = dist::ReduceOp::Avg})->wait();
    for (const Tensor& each : {all, output}) {
      for (int64_t i = 0; i < each.numel(); ++i) {
        if (detail::element_as_double(each, i) != 40000)
          return fmt::format("the average of {} times 40000 in float16 is {}", ranks,
                             detail::element_as_double(each, i));
      }
    }
  }
  return "";
}
const AddRankCase add_range("an average of halves whose sum is too large for them", &check_range,
                            everywhere({2, 4}, host_layouts()));

}  // namespace brigade::test::rank_order_cases
