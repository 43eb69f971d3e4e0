// CUDA kernels of orthogonalize: one block, whose threads share the rows.
#include <brigade/kernels/matmul.h>

#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/matmul.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 512;

struct RowsOfBlock {
  int64_t n;
  double* partial;

  template <class F>
  __device__ double sum(F f) const {
    double total = 0;
    for (int64_t i = threadIdx.x; i < n; i += kThreads)
      total += f(i);
    return cuda::block_reduce(total, cuda::SumOf{}, partial);
  }
  // Each thread reads only elements that it has written itself.
  template <class F>
  __device__ void each(F f) const {
    for (int64_t i = threadIdx.x; i < n; i += kThreads)
      f(i);
  }
};

template <class T>
__global__ void __launch_bounds__(kThreads) orthogonalize_kernel(int64_t n, int64_t r, T* matrix, const T* fresh) {
  BRIGADE_SHARED(double, partial, [kThreads / cuda::kWarp]);
  Columns<T, RowsOfBlock>{matrix, fresh, r, {n, &partial[0]}}.orthogonalize();
}

void orthogonalize_cuda(const Tensor& matrix, const Tensor& fresh) {
  check_orthogonalize(matrix, fresh);
  if (matrix.numel() == 0) return;
  visit_floating(matrix.dtype(), "orthogonalize", [&]<class T>() {
    cuda::launch({"orthogonalize", 1, kThreads}, matrix.device(), &orthogonalize_kernel<T>, matrix.size(0),
                 matrix.size(1), static_cast<T*>(matrix.raw_data()), data_or_null<const T>(fresh));
  });
}

const AddKernel add_orthogonalize(orthogonalize, kCUDA, &orthogonalize_cuda);

}  // namespace
}  // namespace brigade::kernels
