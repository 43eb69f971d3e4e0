// Matrix products: products with a vector, small and thin products and float64 use native loops; other float32 products
// use oneDNN where present.
#include <brigade/kernels/cpu/detail/gemm.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/vector/products.h>

#ifdef BRIGADE_HAVE_ONEDNN
#include <brigade/core/error.h>
#include <brigade/kernels/cpu/detail/onednn.h>
#endif

namespace brigade::kernels::cpu {

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float* a, int64_t lda, const float* b, int64_t ldb,
          float beta, float* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const Factors<float> factors{ta, tb, m, n, k, a, lda, b, ldb, beta != 0, c, ldc};
  if (multiply_by_vector(factors) || multiply_if_small(factors)) return;
  if (const int64_t room = thin_room(factors); room > 0 && k > 0) {
    multiply_thin(factors, empty({room}, kFloat32).data_ptr<float>());
    return;
  }
#ifdef BRIGADE_HAVE_ONEDNN
  // Below about 24^3 the native loops win: they have less overhead.
  if (m * n * k > 24 * 24 * 24) {
    limit_onednn();
    const dnnl_status_t status =
        dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1.0F, a, lda, b, ldb, beta, c, ldc);
    if (status != dnnl_success) throw Error("oneDNN sgemm failed with status {}", status);
    return;
  }
#endif
  multiply(factors);
}

void gemm(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const double* a, int64_t lda, const double* b, int64_t ldb,
          double beta, double* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  const Factors<double> factors{ta, tb, m, n, k, a, lda, b, ldb, beta != 0, c, ldc};
  if (!multiply_by_vector(factors) && !multiply_if_small(factors)) multiply(factors);
}

}  // namespace brigade::kernels::cpu
