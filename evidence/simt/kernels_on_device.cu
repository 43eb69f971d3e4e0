// Never run: checks that the test kernels compile for a device unchanged.
#include <simt/launch.h>

#include "kernels.h"

void launch_all(float* f, __half* h, __nv_bfloat16* b, int* i, unsigned* u, cudaStream_t stream) {
  simt::launch("block_sum", block_sum<float>, 4, 256, 0, stream, f, f, 100);
  simt::launch("scan", scan<8>, 1, 64, 0, stream, i, i);
  simt::launch("axpy_pairs", axpy_pairs, 4, 96, 0, stream, __float2half(2.0f), reinterpret_cast<__half2*>(h),
               reinterpret_cast<__half2*>(h), 50);
  simt::launch("half_functions", half_functions<__half>, 4, 256, 0, stream, h, h, 100);
  simt::launch("half_functions", half_functions<__nv_bfloat16>, 4, 256, 0, stream, b, b, 100);
  simt::launch("add_vectors", add_vectors<__half>, 4, 256, 0, stream, h, h, h, 100);
  simt::launch("layer_norm", layer_norm<__nv_bfloat16>, 4, 128, 4096, stream, b, f, f, b, 770, 1e-5f);
  simt::launch("tiled_matmul", tiled_matmul<float, 16>, dim3(4, 4), dim3(16, 16), 0, stream, f, f, f, 16, 16, 16);
  simt::launch("histogram", histogram, 4, 128, 0, stream, i, u, 100);
  simt::launch("votes", votes, 1, 64, 0, stream, i, u, i, i, i);
}
