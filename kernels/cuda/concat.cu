// CUDA kernels of cat, index_rows and one_hot. One launch joins up to kMostParts dense tensors; other tensors are
// copied into place one by one.
#include <brigade/kernels/indexing.h>

#include <brigade/core/view.h>
#include <brigade/kernels/common/indexing.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/vector.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>

namespace brigade::kernels {
namespace {

constexpr int kThreads = 256;
constexpr int kItems = 4;       // chunks per thread
constexpr int kMostParts = 64;  // kernel parameters are limited to 4 KiB

// A tensor is `outer` ranges of `stretch` bytes, placed in the result at intervals of the stride, starting at `offset`.
struct Part {
  const uint8_t* from;
  int64_t offset;
  int64_t stretch;
};
struct Parts {
  Part part[kMostParts];
};

// Block (x, y) copies chunks of `bytes` bytes of part y; a thread's chunks are kThreads apart, so that a warp reads
// contiguous memory.
template <int bytes>
__global__ void __launch_bounds__(kThreads) cat_kernel(Parts parts, int64_t outer, int64_t stride, uint8_t* out) {
  const Part part = parts.part[blockIdx.y];
  const int64_t length = part.stretch / bytes;
  const int64_t count = outer * length;
  const int64_t first = static_cast<int64_t>(blockIdx.x) * (kThreads * kItems) + threadIdx.x;
#pragma unroll
  for (int u = 0; u < kItems; ++u) {
    const int64_t i = first + u * kThreads;
    if (i >= count) return;
    // Use 32 bits if they suffice: a 64-bit division takes longer than the copy.
    const bool small = count <= 0xffffffffLL;
    const int64_t o = small ? static_cast<uint32_t>(i) / static_cast<uint32_t>(length) : i / length;
    const auto chunk = cuda::load_vector<uint8_t, bytes>(part.from + i * bytes);
    cuda::store_vector<uint8_t, bytes>(out + o * stride + part.offset + (i - o * length) * bytes, chunk);
  }
}

// The widest vector that divides all added addresses and sizes.
struct Alignment {
  uintptr_t bits = cuda::kVectorBytes;
  void add(const void* address) { bits |= reinterpret_cast<uintptr_t>(address); }
  void add(int64_t bytes) { bits |= static_cast<uintptr_t>(bytes); }
  uintptr_t width() const { return bits & (~bits + 1); }
};

struct Joiner {
  const Tensor& result;
  int64_t outer, stride;  // bytes
  Parts parts = {};
  unsigned count = 0;
  int64_t longest = 0;
  Alignment alignment = {};

  void add(const Part& part) {
    parts.part[count++] = part;
    longest = std::max(longest, part.stretch);
    alignment.add(part.from);
    alignment.add(part.offset);
    alignment.add(part.stretch);
    if (count == kMostParts) flush();
  }

  void flush() {
    if (count == 0) return;
    alignment.add(result.raw_data());
    alignment.add(stride);
    switch (alignment.width()) {
      case 16: run<16>(); break;
      case 8: run<8>(); break;
      case 4: run<4>(); break;
      case 2: run<2>(); break;
      default: run<1>(); break;
    }
    count = 0;
    longest = 0;
    alignment = {};
  }

 private:
  template <int bytes>
  void run() {
    cuda::launch({"cat", dim3(cuda::blocks_for(outer * longest / bytes, kThreads * kItems), count), kThreads},
                 result.device(), &cat_kernel<bytes>, parts, outer, stride, static_cast<uint8_t*>(result.raw_data()));
  }
};

Tensor cat_cuda(std::span<const Tensor> tensors, int dim) {
  Tensor result = prepare_cat(tensors, dim);
  if (result.numel() == 0) return result;
  int64_t outer = 1;
  for (int d = 0; d < dim; ++d)
    outer *= result.sizes()[d];
  Joiner joiner{result, outer, static_cast<int64_t>(result.nbytes()) / outer};
  int64_t at = 0;
  int64_t offset = 0;
  for (const Tensor& tensor : tensors) {
    if (adds_nothing(tensor)) continue;
    const int64_t length = tensor.sizes()[dim];
    const int64_t stretch = joiner.stride / result.sizes()[dim] * length;
    if (tensor.numel() == 0) continue;
    if (tensor.is_contiguous() && tensor.dtype() == result.dtype()) {
      joiner.add({static_cast<const uint8_t*>(tensor.raw_data()), offset, stretch});
    } else {
      copy(view::slice(result, dim, at, at + length), tensor);
    }
    at += length;
    offset += stretch;
  }
  joiner.flush();
  return result;
}

Tensor index_rows_cuda(const Tensor& x, const Tensor& indices) {
  Tensor result = prepare_index_rows(x, indices);
  cuda::gather_rows(result, contiguous(x), contiguous(indices), kSelectIndex);
  return result;
}

__global__ void __launch_bounds__(kThreads)
    one_hot_kernel(int64_t count, int64_t classes, cuda::IndexCheck check, const int64_t* indices, int64_t* out) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count && check(indices[i], i)) out[i * classes + indices[i]] = 1;
}

Tensor one_hot_cuda(const Tensor& indices, int64_t classes) {
  Tensor result = prepare_one_hot(indices, classes);
  const Tensor chosen = contiguous(indices);
  const Device device = indices.device();
  cuda::launch({"one_hot", cuda::blocks_for(indices.numel(), kThreads), kThreads}, device, &one_hot_kernel,
               indices.numel(), classes, cuda::IndexCheck(device, kOneHotIndex, classes),
               static_cast<const int64_t*>(chosen.raw_data()), static_cast<int64_t*>(result.raw_data()));
  brigade::cuda::throw_reported_if_blocking(device.index);
  return result;
}

const AddKernel add_cat(cat, kCUDA, &cat_cuda);
const AddKernel add_index_rows(index_rows, kCUDA, &index_rows_cuda);
const AddKernel add_one_hot(one_hot, kCUDA, &one_hot_cuda);

}  // namespace
}  // namespace brigade::kernels
