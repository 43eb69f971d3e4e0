// CUDA kernels of elementwise.h: operations that write to an existing tensor.
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

using cuda::map1;
using cuda::map2;

// Only writes: the existing memory may not be a valid value of the type.
template <int length, class T>
__global__ void __launch_bounds__(cuda::kMapThreads) fill_kernel(int64_t count, T value, T* out) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * cuda::kMapThreads + threadIdx.x) * length;
  if (first + length <= count) {
    cuda::Vector<T, length> values;
    for (int k = 0; k < length; ++k)
      values.values[k] = value;
    cuda::store_vector<T, length>(out + first, values);
    return;
  }
  for (int64_t i = first; i < count; ++i)
    out[i] = value;
}

template <class T>
__global__ void __launch_bounds__(cuda::kMapThreads)
    fill_strided_kernel(uint32_t count, cuda::DeviceStrides<1> strides, T value, T* out) {
  const uint32_t i = blockIdx.x * cuda::kMapThreads + threadIdx.x;
  if (i >= count) return;
  int64_t at[1];
  strides.offsets(i, at);
  out[at[0]] = value;
}

void fill_cuda(const Tensor& out, Scalar value) {
  visit_dtype(out.dtype(), [&]<class T>() {
    const T element = static_cast<T>(value.to<compute_type<T>>());
    T* const data = static_cast<T*>(out.raw_data());
    constexpr int kLength = cuda::kVectorLength<T>;
    if (out.is_contiguous() && cuda::is_aligned(data, kLength)) {
      cuda::launch({"fill", cuda::blocks_for(out.numel(), cuda::kMapThreads * kLength), cuda::kMapThreads},
                   out.device(), &fill_kernel<kLength, T>, out.numel(), element, data);
      return;
    }
    for (const auto& [strides, count, at] : cuda::strided_parts<1>(out.sizes(), {&out})) {
      cuda::launch({"fill", cuda::blocks_for(count, cuda::kMapThreads), cuda::kMapThreads}, out.device(),
                   &fill_strided_kernel<T>, count, strides, element, data + at[0]);
    }
  });
}

template <class C>
struct AddScaled {
  C alpha;
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const { return static_cast<C>(x + alpha * y); }
};

void add_inplace_cuda(const Tensor& out, const Tensor& x, Scalar alpha) {
  check_fits(out, x, "add_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    map2<T, T>("add_inplace", out, same, out, AddScaled<C>{alpha.to<C>()});
  });
}

void mul_inplace_cuda(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "mul_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() { map2<T, T>("mul_inplace", out, same, out, Mul{}); });
}

void scale_inplace_cuda(const Tensor& out, Scalar factor) {
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    map1<T, T>("scale_inplace", out, out, WithNumber<Mul, C>{Mul{}, factor.to<C>(), false});
  });
}

const AddKernel add_fill(fill, kCUDA, &fill_cuda);
const AddKernel add_add_inplace(add_inplace, kCUDA, &add_inplace_cuda);
const AddKernel add_mul_inplace(mul_inplace, kCUDA, &mul_inplace_cuda);
const AddKernel add_scale_inplace(scale_inplace, kCUDA, &scale_inplace_cuda);

}  // namespace
}  // namespace brigade::kernels
