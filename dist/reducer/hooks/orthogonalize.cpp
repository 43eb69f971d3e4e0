// Gram-Schmidt on the columns of a matrix, twice each: what one pass leaves of a column that
// depends on those before it is not orthogonal to them (Kahan's "twice is enough"). On the host:
// the matrix is small, and each column needs the sums over those before it.
#include <brigade/dist/reducer/hooks/orthogonalize.h>
#include <brigade/kernels/elementwise.h>

#include <cmath>

namespace brigade::dist {

std::vector<int64_t> orthogonalize(const Tensor& matrix) {
  std::vector<int64_t> vanished;
  if (matrix.device() != Device()) {
    const Tensor on_host = brigade::detail::on_host(matrix);
    vanished = orthogonalize(on_host);
    kernels::copy(matrix, on_host);
    return vanished;
  }
  const int64_t n = matrix.size(0);
  const int64_t r = matrix.size(1);
  visit_floating(matrix.dtype(), "orthogonalize", [&]<class T>() {
    T* data = static_cast<T*>(matrix.raw_data());
    const auto at = [&](int64_t i, int64_t j) {
      return static_cast<double>(static_cast<compute_type<T>>(data[i * r + j]));
    };
    const auto put = [&](int64_t i, int64_t j, double value) {
      data[i * r + j] = static_cast<T>(static_cast<compute_type<T>>(value));
    };
    for (int64_t j = 0; j < r; ++j) {
      bool vanishes = false;
      // The second pass has hardly anything to take off, unless rounding is all that the first one
      // left.
      for (const double least : {1e-30, 1e-3}) {
        for (int64_t k = 0; k < j; ++k) {
          double dot = 0;
          for (int64_t i = 0; i < n; ++i)
            dot += at(i, j) * at(i, k);
          for (int64_t i = 0; i < n; ++i)
            put(i, j, at(i, j) - dot * at(i, k));
        }
        double norm = 0;
        for (int64_t i = 0; i < n; ++i)
          norm += at(i, j) * at(i, j);
        norm = std::sqrt(norm);
        vanishes = !(norm > least);
        for (int64_t i = 0; i < n; ++i)
          put(i, j, vanishes ? 0 : at(i, j) / norm);
      }
      if (vanishes) vanished.push_back(j);
    }
  });
  return vanished;
}

}  // namespace brigade::dist
