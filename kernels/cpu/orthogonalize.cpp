// Orthogonalization on the CPU, on one thread: the matrices of PowerSGD are narrow.
#include <brigade/kernels/matmul.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/matmul.h>

namespace brigade::kernels {
namespace {

struct AllRows {
  int64_t n;

  template <class F>
  double sum(F f) const {
    double total = 0;
    for (int64_t i = 0; i < n; ++i)
      total += f(i);
    return total;
  }
  template <class F>
  void each(F f) const {
    for (int64_t i = 0; i < n; ++i)
      f(i);
  }
};

void orthogonalize_cpu(const Tensor& matrix, const Tensor& fresh) {
  check_orthogonalize(matrix, fresh);
  visit_floating(matrix.dtype(), "orthogonalize", [&]<class T>() {
    Columns<T, AllRows>{
        static_cast<T*>(matrix.raw_data()), data_or_null<const T>(fresh), matrix.size(1), {matrix.size(0)}}
        .orthogonalize();
  });
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&)> orthogonalize("orthogonalize", &orthogonalize_cpu);

}  // namespace brigade::kernels
