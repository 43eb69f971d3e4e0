#include "rank_case.h"

#include <brigade/core/factory.h>
#include <brigade/core/view.h>
#include <brigade/kernels/elementwise.h>

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace brigade::test::collectives_cases {
const Sizes kSizes = everywhere({1, 2, 3, 4}, host_layouts());

// Small whole numbers, exact in every dtype: element i of rank r.
double value(int rank, int64_t i) { return static_cast<double>((i * 7 + rank * 3) % 5); }

Tensor filled(dist::ProcessGroup& group, int64_t n, DType dtype, bool in_place) {
  const Tensor tensor = in_place ? group.allocate(n, dtype) : empty({n}, dtype);
  std::vector<double> values;
  for (int64_t i = 0; i < n; ++i)
    values.push_back(value(group.rank(), i));
  kernels::copy(tensor, brigade::tensor(values, {n}));
  return tensor;
}

// The dtypes and sizes of a reduction. Threads test all of them; processes, which add with the same functions, test two
// of each, or all when BRIGADE_ALL_DTYPES=1 is set in the environment (scripts/nightly.sh).
struct Reduced {
  std::vector<DType> dtypes{kFloat64, kFloat32, kFloat16, kBFloat16, kInt64, kInt32, kUInt8};
  std::vector<int64_t> sizes{0, 1, 63, 1000, 5003};
};
Reduced reduced_on(const std::string& backend) {
  const char* const all = std::getenv("BRIGADE_ALL_DTYPES");
  if (backend == "threads" || (all && std::strcmp(all, "1") == 0)) return {};
  return {.dtypes = {kFloat32, kBFloat16}, .sizes = {63, 5003}};
}

std::string check_all_reduce(const dist::ProcessGroupPtr& group) {
  const int n_ranks = group->size();
  const Reduced reduced = reduced_on(group->backend());
  for (const DType dtype : reduced.dtypes) {
    for (const int64_t n : reduced.sizes) {
      for (const bool in_place : {true, false}) {
        for (const dist::ReduceOp op :
             {dist::ReduceOp::Sum, dist::ReduceOp::Avg, dist::ReduceOp::Max, dist::ReduceOp::Min}) {
          if (op == dist::ReduceOp::Avg && !is_floating_point(dtype)) continue;
          const Tensor x = filled(*group, n, dtype, in_place);
          group->all_reduce(x, {.op = op})->wait();
          for (int64_t i = 0; i < n; ++i) {
            double expected = value(0, i);
            for (int r = 1; r < n_ranks; ++r) {
              const double v = value(r, i);
              expected = op == dist::ReduceOp::Max   ? std::max(expected, v)
                         : op == dist::ReduceOp::Min ? std::min(expected, v)
                                                     : expected + v;
            }
            if (op == dist::ReduceOp::Avg) expected /= n_ranks;
            const double tolerance =
                op == dist::ReduceOp::Avg ? (is_half(dtype) ? 1e-2 : 1e-6) * std::max(1.0, expected) : 0;
            if (std::abs(detail::element_as_double(x, i) - expected) > tolerance) {
              return fmt::format("{} {} of {} x {} in place {}: element {} is {}, expected {}", name(op),
                                 group->backend(), n, name(dtype), in_place, i, detail::element_as_double(x, i),
                                 expected);
            }
          }
        }
      }
    }
  }
  return "";
}
const AddRankCase add_all_reduce("all_reduce gives the right values in every dtype, in place and staged",
                                 &check_all_reduce, kSizes);

std::string check_other_collectives(const dist::ProcessGroupPtr& group) {
  const int n_ranks = group->size();
  for (const bool in_place : {true, false}) {
    for (int root = 0; root < n_ranks; ++root) {
      const Tensor x = filled(*group, 77, kFloat32, in_place);
      group->broadcast(x, {.root = root})->wait();
      for (int64_t i = 0; i < 77; ++i) {
        if (detail::element_as_double(x, i) != value(root, i)) return "broadcast";
      }
    }
    // Large enough for a transport to split it into pieces.
    const Tensor x = filled(*group, 400'003, kFloat32, in_place);
    group->broadcast(x, {.root = n_ranks - 1})->wait();
    for (int64_t i = 0; i < x.numel(); i += 331) {
      if (detail::element_as_double(x, i) != value(n_ranks - 1, i)) return "broadcast of a large tensor";
    }
    const Tensor mine = filled(*group, 33, kInt64, in_place);
    const Tensor all = in_place ? group->allocate(33 * n_ranks, kInt64) : empty({33 * n_ranks}, kInt64);
    group->all_gather(all, mine)->wait();
    for (int64_t i = 0; i < all.numel(); ++i) {
      if (detail::element_as_double(all, i) != value(static_cast<int>(i / 33), i % 33)) return "all_gather";
    }
    const Tensor whole = filled(*group, 9 * n_ranks, kFloat32, in_place);
    const Tensor part = empty({9});
    group->reduce_scatter(part, whole)->wait();
    for (int64_t i = 0; i < 9; ++i) {
      double expected = 0;
      for (int r = 0; r < n_ranks; ++r)
        expected += value(r, group->rank() * 9 + i);
      if (detail::element_as_double(part, i) != expected) return "reduce_scatter";
    }
    group->barrier();
  }
  try {
    group->all_reduce(view::slice(empty({4}), 0, 0, 4, 2));
    return "a strided tensor was accepted";
  } catch (const ShapeError&) {
  }
  return "";
}
const AddRankCase add_other_collectives(
    "broadcast, all_gather and reduce_scatter give the right values; a strided tensor is refused",
    &check_other_collectives, kSizes);

std::string check_many_pending(const dist::ProcessGroupPtr& group) {
  std::vector<Tensor> buffers;
  std::vector<dist::WorkPtr> works;
  for (int64_t k = 0; k < 100; ++k) {
    buffers.push_back(group->allocate(100 + k, kFloat32));
    kernels::fill(buffers.back(), static_cast<double>(group->rank() + k));
    works.push_back(group->all_reduce(buffers.back()));
  }
  // The latest first: completion does not depend on the order of waiting.
  for (size_t k = works.size(); k-- > 0;)
    works[k]->wait();
  for (int64_t k = 0; k < 100; ++k) {
    const int n = group->size();
    const double expected = n * (n - 1) / 2.0 + static_cast<double>(n * k);
    if (detail::element_as_double(buffers[static_cast<size_t>(k)], 99 + k) != expected)
      return fmt::format("operation {}", k);
    if (!works[static_cast<size_t>(k)]->is_completed()) return "is_completed after wait";
  }
  return "";
}
const AddRankCase add_many_pending("a hundred collectives at once, the latest waited for first", &check_many_pending,
                                   kSizes);

std::string check_texts(const dist::ProcessGroupPtr& group) {
  const auto texts = group->all_gather_text(std::string(static_cast<size_t>(group->rank() * 1000), 'x') + "end");
  for (int r = 0; r < group->size(); ++r) {
    if (texts[static_cast<size_t>(r)] != std::string(static_cast<size_t>(r * 1000), 'x') + "end") return "text";
  }
  return "";
}
const AddRankCase add_texts("texts of several lengths reach every rank", &check_texts, kSizes);

}  // namespace brigade::test::collectives_cases
