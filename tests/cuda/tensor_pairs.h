// Lists of tensors on both sides, for kernels over many tensors.
#pragma once

#include "on_device.h"

#include <near.h>

#include <utility>
#include <vector>

namespace brigade::test {

// The same tensors on both sides, optionally unaligned.
struct Pair {
  std::vector<Tensor> here, there;

  Pair(const std::vector<int64_t>& sizes, DType dtype, uint64_t seed, int64_t late = 0) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      // Nonnegative, since they also serve as second moments.
      const Tensor whole = kernels::unary(numbers({sizes[i] + late}, dtype, seed + 100 * i), kernels::UnaryOp::Abs);
      here.push_back(kernels::clone(view::slice(whole, 0, late, sizes[i] + late)));
      there.push_back(view::slice(on_device(whole), 0, late, sizes[i] + late));
    }
  }
  double difference() const {
    double worst = 0;
    for (size_t i = 0; i < here.size(); ++i)
      worst = worse(worst, test::difference(there[i], here[i]));
    return worst;
  }
};

// Sizes around a piece, tiny, and empty; and more tensors than one launch takes.
inline const std::vector<int64_t> kMixed{20000, 1, 0, 8192, 8193, 7, 8191, 3, 64, 0, 5000, 2};
inline std::vector<int64_t> many() {
  std::vector<int64_t> sizes;
  for (int64_t i = 0; i < 200; ++i)
    sizes.push_back(i % 19);
  return sizes;
}

// Which tensors of a parameter are unaligned: bit 0 the parameter and others, bit 1 one of its state tensors.
inline const std::vector<std::pair<int64_t, std::vector<int64_t>>> kStarts{
    {0, kMixed}, {3, kMixed}, {2, kMixed}, {0, many()}};

}  // namespace brigade::test
