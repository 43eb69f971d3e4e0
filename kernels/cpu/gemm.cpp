#include <brigade/kernels/cpu/detail/gemm.h>

#include <brigade/kernels/cpu/detail/small_gemm.h>

#include <Eigen/Core>

#ifdef BRIGADE_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>

#include <stdexcept>
#endif

namespace brigade::kernels::cpu {

namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstMap = Eigen::Map<const Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using Map = Eigen::Map<Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T>
void gemm_eigen(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
                T beta, T* c, int64_t ldc) {
  const ConstMap<T> x(a, ta ? k : m, ta ? m : k, Eigen::OuterStride<>(lda));
  const ConstMap<T> y(b, tb ? n : k, tb ? k : n, Eigen::OuterStride<>(ldb));
  Map<T> z(c, m, n, Eigen::OuterStride<>(ldc));
  if (beta == T(0)) z.setZero();
  if (!ta && !tb) z.noalias() += x * y;
  if (ta && !tb) z.noalias() += x.transpose() * y;
  if (!ta && tb) z.noalias() += x * y.transpose();
  if (ta && tb) z.noalias() += x.transpose() * y.transpose();
}

}  // namespace

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float beta, float* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (SmallGemm<float>::suits(m, n, k)) {
    SmallGemm<float>::multiply(ta, tb, m, n, k, a, lda, b, ldb, beta != 0, c, ldc);
    return;
  }
#ifdef BRIGADE_HAVE_ONEDNN
  // Below about 24^3 Eigen's smaller overhead wins.
  if (m * n * k > 24 * 24 * 24) {
    const dnnl_status_t status =
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0F, a, lda, b, ldb, beta, c, ldc);
    if (status != dnnl_success) throw std::runtime_error("oneDNN sgemm failed with status " + std::to_string(status));
    return;
  }
#endif
  gemm_eigen(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double beta, double* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (SmallGemm<double>::suits(m, n, k)) {
    SmallGemm<double>::multiply(ta, tb, m, n, k, a, lda, b, ldb, beta != 0, c, ldc);
    return;
  }
  gemm_eigen(ta, tb, m, n, k, a, lda, b, ldb, beta, c, ldc);
}

}  // namespace brigade::kernels::cpu
