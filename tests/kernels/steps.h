// Helpers for the tests of optimizer steps: compares a step over a list of parameters with a scalar step per element in
// double.
#pragma once

#include <brigade/core/factory.h>

#include <kernels/values.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::test {

// One tensor per parameter in each list: the parameters, their gradients, then the state.
using Lists = std::vector<std::vector<Tensor>>;

// Odd sizes, an empty tensor, one large enough for several threads, and an unaligned one. State is positive: between
// 0.5 and 1 times its entry in `scales`.
inline Lists step_lists(DType dtype, const std::vector<double>& scales) {
  const auto filled = [&](const Shape& sizes, uint64_t seed, double scale) {
    if (scale == 0) return random(sizes, seed, dtype);  // parameters and gradients
    RandomGenerator generator(seed);
    const Tensor share = kernels::binary_scalar(rand(sizes, kFloat64, &generator), 1, kernels::BinaryOp::Add, false);
    return kernels::cast(kernels::binary_scalar(share, scale / 2, kernels::BinaryOp::Mul, false), dtype);
  };
  Lists lists;
  for (size_t list = 0; list < 2 + scales.size(); ++list) {
    const double scale = list < 2 ? 0 : scales[list - 2];
    const uint64_t seed = 10 * list;
    lists.push_back({filled({7}, seed + 1, scale), filled({0}, seed + 2, scale), filled({}, seed + 3, scale),
                     filled({3, 5, 11}, seed + 4, scale), view::slice(filled({34}, seed + 5, scale), 0, 1, 34),
                     filled({70001}, seed + 6, scale)});
  }
  return lists;
}

// Runs `step` on lists of every floating dtype and compares each element with the result of `plain` on the same values,
// in the order of the lists.
inline void check_steps(const std::vector<double>& scales, const std::function<void(const Lists&)>& step,
                        const std::function<void(std::vector<double>&)>& plain) {
  for (const DType dtype : kEveryFloating) {
    CAPTURE(std::string(name(dtype)));
    const Lists lists = step_lists(dtype, scales);
    std::vector<std::vector<std::vector<double>>> before;
    for (const auto& list : lists) {
      before.emplace_back();
      for (const Tensor& tensor : list)
        before.back().push_back(tensor.to_vector<double>());
    }
    step(lists);
    std::vector<double> values(lists.size());
    int wrong = 0;  // only the first is reported
    for (size_t i = 0; i < lists[0].size(); ++i) {
      const size_t count = before[0][i].size(), apart = count > 1000 ? 101 : 1;
      for (size_t e = 0; e < count; e += apart) {
        for (size_t list = 0; list < lists.size(); ++list)
          values[list] = before[list][i][e];
        plain(values);
        for (size_t list = 0; list < lists.size(); ++list) {
          const double found = at(lists[list][i], static_cast<int64_t>(e));
          if (is_close(found, values[list], tolerance(dtype)) || wrong++ > 0) continue;
          FAIL_CHECK("list " << list << ", parameter " << i << ", element " << e << ": " << found << ", not "
                             << values[list]);
        }
      }
    }
  }
}

}  // namespace brigade::test
