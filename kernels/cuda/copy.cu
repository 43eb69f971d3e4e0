// CUDA kernels of elementwise.h: copies and casts. Dense memory has one kernel per pair of dtypes; strided casts select
// the source dtype at run time.
#include <brigade/core/device_runtime.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/transpose.h>

namespace brigade::kernels {
namespace {

struct Identity {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return x;
  }
};

// Converts element `at` of an array of this dtype.
template <class To>
__device__ To converted(const void* data, DType dtype, int64_t at) {
  const auto as = [&](auto* elements) {
    using From = std::remove_cv_t<std::remove_pointer_t<decltype(elements)>>;
    return as_element<To>(static_cast<compute_type<From>>(elements[at]));
  };
  switch (dtype) {
    case DType::Float64: return as(static_cast<const double*>(data));
    case DType::Float32: return as(static_cast<const float*>(data));
    case DType::Float16: return as(static_cast<const float16*>(data));
    case DType::BFloat16: return as(static_cast<const bfloat16*>(data));
    case DType::Int64: return as(static_cast<const int64_t*>(data));
    case DType::Int32: return as(static_cast<const int32_t*>(data));
    case DType::UInt8: return as(static_cast<const uint8_t*>(data));
    case DType::Bool: break;
  }
  return as(static_cast<const bool*>(data));
}

// One kernel for all source dtypes, since it is bound by memory.
template <class To>
__global__ void __launch_bounds__(cuda::kMapThreads)
    cast_strided_kernel(uint32_t count, cuda::DeviceStrides<2> strides, DType from, const void* a, To* out) {
  for (int u = 0; u < cuda::kStridedItems; ++u) {
    const uint32_t i = (blockIdx.x * cuda::kStridedItems + static_cast<uint32_t>(u)) * cuda::kMapThreads + threadIdx.x;
    if (i >= count) return;
    int64_t at[2];
    strides.offsets(i, at);
    out[at[1]] = converted<To>(a, from, at[0]);
  }
}

template <class To>
void cast_strided(const Tensor& x, const Tensor& out) {
  const char* const from = static_cast<const char*>(x.raw_data());
  To* const to = static_cast<To*>(out.raw_data());
  const auto size = static_cast<int64_t>(itemsize(x.dtype()));
  for (const auto& [strides, count, at] : cuda::strided_parts<2>(out.sizes(), {&x, &out})) {
    cuda::launch({"copy", cuda::blocks_for(count, cuda::kMapThreads * cuda::kStridedItems), cuda::kMapThreads},
                 out.device(), &cast_strided_kernel<To>, count, strides, x.dtype(),
                 static_cast<const void*>(from + at[0] * size), to + at[1]);
  }
}

void copy_cuda(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "copy");
  if (out.device() != x.device()) return copy_between_devices(out, x);
  if (out.dtype() == x.dtype() && cuda::is_dense(x, out)) {
    if (out.raw_data() != x.raw_data())
      copy_bytes(out.raw_data(), out.device(), x.raw_data(), x.device(), out.nbytes());
    return;
  }
  if (out.dtype() == x.dtype() && cuda::copy_transposed(out, x)) return;
  visit_dtype(out.dtype(), [&]<class To>() {
    if (out.dtype() == x.dtype()) {
      cuda::map1_strided<To, To>("copy", x, out, Identity{});  // dense tensors were copied above
      return;
    }
    bool done = false;
    visit_dtype(x.dtype(), [&]<class From>() {
      if constexpr (!std::is_same_v<From, To>) done = cuda::map1_dense<From, To>("copy", x, out, Identity{});
    });
    if (!done) cast_strided<To>(x, out);
  });
}

const AddKernel add_copy(copy, kCUDA, &copy_cuda);

}  // namespace
}  // namespace brigade::kernels
