// The CUDA column of elementwise.h.
#include <brigade/core/device_runtime.h>
#include <brigade/core/factory.h>
#include <brigade/kernels/cuda/detail/map.h>
#include <brigade/kernels/cuda/detail/transpose.h>
#include <brigade/kernels/detail/elementwise_checks.h>
#include <brigade/kernels/detail/functors.h>

namespace brigade::kernels {

namespace {

using cuda::map1;
using cuda::map2;

// Calls body with a functor: one per operation for floating types, one for all otherwise.
template <class T, class Body>
void with_binary_of(BinaryOp op, Body&& body) {
  if constexpr (is_floating_point(dtype_of<T>)) {
    with_binary(op, body);
  } else {
    body(AnyBinary{op});
  }
}

Tensor binary_cuda(const Tensor& a, const Tensor& b, BinaryOp op) {
  const Operands o = prepare_binary(a, b, op);
  visit_dtype(o.out.dtype(),
              [&]<class T>() { with_binary_of<T>(op, [&](auto f) { map2<T, T>("binary", o.x, o.y, o.out, f); }); });
  return o.out;
}

Tensor binary_scalar_cuda(const Tensor& a, double scalar, BinaryOp op, bool reversed) {
  const Operands o = prepare_binary_scalar(a, scalar, op);
  visit_dtype(o.out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    if constexpr (!std::is_same_v<T, bool>) {  // a bool is computed as int64
      with_binary_of<T>(op, [&](auto f) {
        map1<T, T>("binary_scalar", o.x, o.out, WithNumber<decltype(f), C>{f, static_cast<C>(scalar), reversed});
      });
    }
  });
  return o.out;
}

Tensor compare_cuda(const Tensor& a, const Tensor& b, CompareOp op) {
  const Operands o = prepare_compare(a, b);
  visit_dtype(o.x.dtype(), [&]<class T>() { map2<T, bool>("compare", o.x, o.y, o.out, AnyCompare{op}); });
  return o.out;
}

Tensor compare_scalar_cuda(const Tensor& a, double scalar, CompareOp op) {
  Tensor out = empty(a.sizes(), {kBool, a.device()});
  visit_dtype(a.dtype(), [&]<class T>() {
    map1<T, bool>("compare_scalar", a, out, CompareWithNumber<AnyCompare>{AnyCompare{op}, scalar});
  });
  return out;
}

Tensor unary_cuda(const Tensor& x, UnaryOp op) {
  Tensor out = empty(x.sizes(), x.options());
  if (takes_integers(op) && x.dtype() == kInt64) {
    with_unary_any(op, [&](auto f) { map1<int64_t, int64_t>("unary", x, out, f); });
  } else if (takes_integers(op) && x.dtype() == kInt32) {
    with_unary_any(op, [&](auto f) { map1<int32_t, int32_t>("unary", x, out, f); });
  } else {
    visit_floating(x.dtype(), "unary operation",
                   [&]<class T>() { with_unary(op, [&](auto f) { map1<T, T>("unary", x, out, f); }); });
  }
  return out;
}

struct Identity {
  template <class C>
  BRIGADE_HOST_DEVICE C operator()(C x) const {
    return x;
  }
};

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
    visit_dtype(x.dtype(), [&]<class From>() {
      if constexpr (std::is_same_v<From, To>) {
        cuda::map1_strided<From, To>("copy", x, out, Identity{});  // what is dense was copied above
      } else {
        map1<From, To>("copy", x, out, Identity{});
      }
    });
  });
}

// Writes only: what is there may be no value of the type.
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

void fill_cuda(const Tensor& out, double value) {
  visit_dtype(out.dtype(), [&]<class T>() {
    const T element = static_cast<T>(static_cast<compute_type<T>>(value));
    T* const data = static_cast<T*>(out.raw_data());
    constexpr int kLength = cuda::kVectorLength<T>;
    if (out.is_contiguous() && cuda::is_aligned(data, kLength)) {
      cuda::launch({"fill", cuda::blocks_for(out.numel(), cuda::kMapThreads * kLength), cuda::kMapThreads},
                   out.device(), &fill_kernel<kLength, T>, out.numel(), element, data);
      return;
    }
    const StridedLayout<1> layout(out.sizes(), {&out});
    cuda::for_strided_parts<1>(
        layout.sizes, layout.strides, {}, [&](const cuda::DeviceStrides<1>& strides, uint32_t count, const auto& at) {
          cuda::launch({"fill", cuda::blocks_for(count, cuda::kMapThreads), cuda::kMapThreads}, out.device(),
                       &fill_strided_kernel<T>, count, strides, element, data + at[0]);
        });
  });
}

template <class C>
struct AddScaled {
  C alpha;
  BRIGADE_HOST_DEVICE C operator()(C x, C y) const { return static_cast<C>(x + alpha * y); }
};

void add_inplace_cuda(const Tensor& out, const Tensor& x, double alpha) {
  check_fits(out, x, "add_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    map2<T, T>("add_inplace", out, same, out, AddScaled<C>{static_cast<C>(alpha)});
  });
}

void mul_inplace_cuda(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "mul_");
  const Tensor same = cast(x, out.dtype());
  visit_dtype(out.dtype(), [&]<class T>() { map2<T, T>("mul_inplace", out, same, out, Mul{}); });
}

void scale_inplace_cuda(const Tensor& out, double factor) {
  visit_dtype(out.dtype(), [&]<class T>() {
    using C = compute_type<T>;
    map1<T, T>("scale_inplace", out, out, WithNumber<Mul, C>{Mul{}, static_cast<C>(factor), false});
  });
}

const AddKernel add_binary(binary, kCUDA, &binary_cuda);
const AddKernel add_binary_scalar(binary_scalar, kCUDA, &binary_scalar_cuda);
const AddKernel add_compare(compare, kCUDA, &compare_cuda);
const AddKernel add_compare_scalar(compare_scalar, kCUDA, &compare_scalar_cuda);
const AddKernel add_unary(unary, kCUDA, &unary_cuda);
const AddKernel add_copy(copy, kCUDA, &copy_cuda);
const AddKernel add_fill(fill, kCUDA, &fill_cuda);
const AddKernel add_add_inplace(add_inplace, kCUDA, &add_inplace_cuda);
const AddKernel add_mul_inplace(mul_inplace, kCUDA, &mul_inplace_cuda);
const AddKernel add_scale_inplace(scale_inplace, kCUDA, &scale_inplace_cuda);

}  // namespace

}  // namespace brigade::kernels
