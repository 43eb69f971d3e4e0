// Sums, norms, variances, extremes, scans and sorts, for the checks of derivatives.
#include <brigade/autograd/functional.h>
#include <brigade/core/factory.h>
#include "../cases.h"

#include <limits>

namespace brigade::test::reduce_cases {
namespace {

const AddCases add_reduce_cases([] {
  return std::vector<Case>{
      {"sum", [](const Inputs& i) { return sum(i[0]); }, {input({2, 3})}},
      {"sum dims",
       [](const Inputs& i) {
         return sum(i[0], {0, 2});
       },
       {input({2, 3, 4})}},
      {"sum keepdim", [](const Inputs& i) { return sum(i[0], {-1}, true); }, {input({2, 3})}},
      {"mean", [](const Inputs& i) { return mean(i[0], {1}); }, {input({2, 3})}},
      {"prod", [](const Inputs& i) { return prod(i[0]); }, {input({2, 3})}, {.roundings = 3}},
      {"prod last", [](const Inputs& i) { return prod(i[0], {-1}); }, {input({2, 5})}, {.roundings = 3}},
      {"prod dims",
       [](const Inputs& i) {
         return prod(i[0], {0, 2}, true);
       },
       {input({2, 3, 4})},
       {.roundings = 3}},
      {"prod with a zero",
       [](const Inputs& i) { return prod(i[0] * i[1], {1}); },
       {input({2, 3}), tensor<double>({1, 0, 1, 0, 1, 0}, {2, 3})},
       {.roundings = 3}},
      {"prod of one", [](const Inputs& i) { return prod(i[0], {1}); }, {input({2, 1})}},
      {"logsumexp", [](const Inputs& i) { return logsumexp(i[0], {1}); }, {input({2, 5})}},
      {"logsumexp of all", [](const Inputs& i) { return logsumexp(i[0]); }, {input({2, 5})}},
      {"logsumexp dims",
       [](const Inputs& i) {
         return logsumexp(i[0], {0, 2}, true);
       },
       {input({2, 3, 4})}},
      {"sum_to",
       [](const Inputs& i) {
         return sum_to(i[0], {1, 3});
       },
       {input({2, 4, 3})}},
  };
});

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const AddCases add_norm_cases([] {
  return std::vector<Case>{
      {"norm", [](const Inputs& i) { return norm(i[0]); }, {input({3, 4})}},
      {"norm dims",
       [](const Inputs& i) {
         return norm(i[0], 2, {0, 2}, true);
       },
       {input({2, 3, 4})}},
      {"norm 0", [](const Inputs& i) { return norm(i[0], 0, {1}) + sum(i[0]); }, {input({3, 4})}},
      {"norm 1", [](const Inputs& i) { return norm(i[0], 1, {1}); }, {input({3, 4})}},
      {"norm 3", [](const Inputs& i) { return norm(i[0], 3, {0}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm 1.5", [](const Inputs& i) { return norm(i[0], 1.5, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm 0.5", [](const Inputs& i) { return norm(i[0], 0.5, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm -2", [](const Inputs& i) { return norm(i[0], -2, {-1}); }, {input({3, 4})}, {.roundings = 3}},
      {"norm infinite", [](const Inputs& i) { return norm(i[0], kInfinity, {1}); }, {input({3, 4})}},
      {"norm -infinite", [](const Inputs& i) { return norm(i[0], -kInfinity, {1}, true); }, {input({3, 4})}},
      {"vector_norm",
       [](const Inputs& i) {
         return vector_norm(i[0], 2, {1, 2});
       },
       {input({2, 3, 4})}},
      {"matrix_norm", [](const Inputs& i) { return matrix_norm(i[0]); }, {input({2, 3, 4})}},
      {"normalize", [](const Inputs& i) { return normalize(i[0]); }, {input({2, 3})}, {.roundings = 2}},
      {"normalize 1", [](const Inputs& i) { return normalize(i[0], 1, 0); }, {input({4, 2})}, {.roundings = 2}},
      {"normalize, small", [](const Inputs& i) { return normalize(i[0], 2, 0, 2.5); }, {input({4, 3})}},
      {"cosine_similarity",
       [](const Inputs& i) { return cosine_similarity(i[0], i[1]); },
       {input({3, 4}), input({3, 4}, 2)},
       {.roundings = 2}},
      {"cosine_similarity broadcast",
       [](const Inputs& i) { return cosine_similarity(i[0], i[1], -1); },
       {input({2, 1, 4}), input({3, 4}, 2)},
       {.roundings = 2}},
  };
});

const AddCases add_variance_cases([] {
  return std::vector<Case>{
      {"var", [](const Inputs& i) { return var(i[0]); }, {input({3, 4})}},
      {"var last", [](const Inputs& i) { return var(i[0], {-1}, 0); }, {input({3, 4})}},
      {"var middle", [](const Inputs& i) { return var(i[0], {1}, 1, true); }, {input({2, 3, 4})}},
      {"var scattered",
       [](const Inputs& i) {
         return var(i[0], {0, 2}, 2.5);
       },
       {input({2, 3, 4})}},
      {"std", [](const Inputs& i) { return std(i[0], {1}); }, {input({3, 4})}},
      {"std scattered",
       [](const Inputs& i) {
         return std(i[0], {0, 2}, 0, true);
       },
       {input({2, 3, 4})}},
      {"var_mean",
       [](const Inputs& i) {
         const SpreadAndMean found = var_mean(i[0], {1});
         return found.spread * found.mean;
       },
       {input({3, 4})},
       {.roundings = 2}},
      {"var_mean, the mean", [](const Inputs& i) { return var_mean(i[0], {0}, 1, true).mean; }, {input({3, 4})}},
      {"std_mean",
       [](const Inputs& i) {
         const SpreadAndMean found = std_mean(i[0], {0}, 0);
         return found.spread + found.mean;
       },
       {input({3, 4})},
       {.roundings = 2}},
  };
});

const AddCases add_extremes_cases([] {
  return std::vector<Case>{
      {"max", [](const Inputs& i) { return max(i[0], 1).values; }, {input({3, 4})}},
      {"min", [](const Inputs& i) { return min(i[0], 0, true).values; }, {input({3, 4})}},
      {"max of a number", [](const Inputs& i) { return max(i[0], 0).values; }, {input({})}},
      {"max of all", [](const Inputs& i) { return max(i[0]); }, {input({3, 4})}},
      {"min of all", [](const Inputs& i) { return min(i[0]); }, {input({3, 4})}},
      {"amax", [](const Inputs& i) { return amax(i[0], {1}); }, {input({3, 4})}},
      {"amax dims",
       [](const Inputs& i) {
         return amax(i[0], {0, -1}, true);
       },
       {input({2, 3, 4})}},
      {"amin", [](const Inputs& i) { return amin(i[0]); }, {input({3, 4})}},
      {"amin dims",
       [](const Inputs& i) {
         return amin(i[0], {1, 2});
       },
       {input({2, 3, 4})}},
  };
});

const AddCases add_scan_cases([] {
  const auto with_zeros = [](std::vector<double> values) {
    const auto count = static_cast<int64_t>(values.size()) / 2;
    return tensor(values, {2, count}).requires_grad_();
  };
  return std::vector<Case>{
      {"cumsum",
       [](const Inputs& i) { return cumsum(i[0], 1) * i[1]; },
       {input({2, 4, 3}), fixed({2, 4, 3}, 1)},
       {.roundings = 2}},
      {"cumsum last",
       [](const Inputs& i) { return cumsum(i[0], -1) * i[1]; },
       {input({2, 5}), fixed({2, 5}, 1)},
       {.roundings = 2}},
      {"cumprod",
       [](const Inputs& i) { return cumprod(i[0], 0) * i[1]; },
       {input({5, 2}), fixed({5, 2}, 1)},
       {.roundings = 4}},
      {"cumprod with zeros",
       [](const Inputs& i) { return cumprod(i[0], 1) * i[1]; },
       {with_zeros({0.5, 0, -1.5, 2, 0, 0.75, 1.25, -0.5, 2, 0}), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"logcumsumexp",
       [](const Inputs& i) { return logcumsumexp(i[0] * 3.0, 1) * i[1]; },
       {input({2, 5}), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"linear_recurrence",
       [](const Inputs& i) { return linear_recurrence(i[0], i[1], 1) * i[2]; },
       {input({2, 5}), input({2, 5}, 2), fixed({2, 5}, 1)},
       {.roundings = 4}},
      {"linear_recurrence from the end",
       [](const Inputs& i) { return linear_recurrence(i[0], i[1], 0, true) * i[2]; },
       {input({4, 2}), input({4, 2}, 2), fixed({4, 2}, 1)},
       {.roundings = 4}},
  };
});

const AddCases add_sort_cases([] {
  return std::vector<Case>{
      {"sort", [](const Inputs& i) { return sort(i[0]).values * i[1]; }, {input({3, 4}), fixed({3, 4}, 1)}},
      {"sort descending",
       [](const Inputs& i) { return sort(i[0], 1, true).values * i[1]; },
       {input({2, 5, 2}), fixed({2, 5, 2}, 1)}},
      {"topk", [](const Inputs& i) { return topk(i[0], 3).values * i[1]; }, {input({2, 6}), fixed({2, 3}, 1)}},
      {"topk smallest",
       [](const Inputs& i) { return topk(i[0], 2, 0, false).values * i[1]; },
       {input({5, 3}), fixed({2, 3}, 1)}},
  };
});

}  // namespace
}  // namespace brigade::test::reduce_cases
