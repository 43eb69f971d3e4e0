// The in-place kernels of elementwise.h: copies with casts, fills, sums and scalings.
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/common/elementwise_functors.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/stretches.h>
#include <brigade/kernels/cpu/vector/elementwise.h>

#include <algorithm>
#include <cstring>

namespace brigade::kernels {
namespace {

using cpu::parallel_for;
using cpu::StridedLoop;

// Elements of a row, `step` elements apart.
struct Row {
  DType dtype;
  char* data;
  int64_t step;
};

// Copies through dense buffers in the L1 cache if a side is not dense.
void copy_row(const Row& to, const Row& from, int64_t length) {
  constexpr int64_t kStretch = 1024;
  alignas(64) char room[2][kStretch * 8];
  const size_t from_size = itemsize(from.dtype);
  const size_t to_size = itemsize(to.dtype);
  for (int64_t first = 0; first < length; first += kStretch) {
    const int64_t n = std::min(kStretch, length - first);
    const char* source = from.data + first * from.step * static_cast<int64_t>(from_size);
    char* const target = to.data + first * to.step * static_cast<int64_t>(to_size);
    const bool is_same = to.dtype == from.dtype;
    if (from.step != 1) {
      // Without a conversion and with a dense target, this copy is sufficient.
      char* const dense = is_same && to.step == 1 ? target : room[0];
      cpu::gather_words(source, from.step, from_size, dense, n);
      if (dense == target) continue;
      source = dense;
    }
    if (!is_same || to.step == 1) {
      char* const dense = to.step == 1 ? target : room[1];
      cpu::convert(from.dtype, source, to.dtype, dense, n);
      if (dense == target) continue;
      source = dense;
    }
    cpu::scatter_words(source, to_size, target, to.step, n);
  }
}

void copy_cpu(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "copy");
  if (out.device() != x.device()) return copy_between_devices(out, x);
  if (out.dtype() == x.dtype() && out.is_contiguous() && x.is_contiguous() && out.numel() == x.numel()) {
    auto* to = static_cast<char*>(out.raw_data());
    const auto* from = static_cast<const char*>(x.raw_data());
    if (to == from) return;
    parallel_for(static_cast<int64_t>(out.nbytes()), [&](int64_t begin, int64_t end) {
      std::memcpy(to + begin, from + begin, static_cast<size_t>(end - begin));
    });
    return;
  }
  const auto to_size = static_cast<int64_t>(out.itemsize());
  const auto from_size = static_cast<int64_t>(x.itemsize());
  char* const to = static_cast<char*>(out.raw_data());
  char* const from = static_cast<char*>(x.raw_data());
  if (out.is_contiguous() && x.is_contiguous() && out.numel() == x.numel()) {
    parallel_for(out.numel(), [&](int64_t begin, int64_t end) {
      cpu::convert(x.dtype(), from + begin * from_size, out.dtype(), to + begin * to_size, end - begin);
    });
    return;
  }
  StridedLoop<2>(out.sizes(), {&out, &x}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
    copy_row(Row{out.dtype(), to + offsets[0] * to_size, steps[0]},
             Row{x.dtype(), from + offsets[1] * from_size, steps[1]}, length);
  });
}

void fill_cpu(const Tensor& out, Scalar value) {
  visit_dtype(out.dtype(), [&]<class T>() {
    const T element = static_cast<T>(value.to<compute_type<T>>());
    T* target = static_cast<T*>(out.raw_data());
    if (out.is_contiguous()) {
      parallel_for(out.numel(), [&](int64_t begin, int64_t end) { std::fill(target + begin, target + end, element); });
      return;
    }
    StridedLoop<1>(out.sizes(), {&out}).for_each_row([&](const auto& offsets, const auto& steps, int64_t length) {
      for (int64_t i = 0; i < length; ++i)
        target[offsets[0] + i * steps[0]] = element;
    });
  });
}

void add_inplace_cpu(const Tensor& out, const Tensor& x, Scalar alpha) {
  check_fits(out, x, "add_");
  const Tensor same = cast(x, out.dtype());
  if (cpu::is_computed_in_float(out.dtype())) {
    const auto factor = alpha.to<float>();
    cpu::map_floats({&out, &same}, out, [=](const cpu::FloatArrays& arrays) {
      if (factor == 1.0F) return cpu::binary_floats(BinaryOp::Add, arrays);
      cpu::add_scaled_floats(factor, arrays);
    });
  } else if (out.dtype() == kFloat64) {
    cpu::map_doubles({&out, &same}, out,
                     cpu::loop2<double>([factor = alpha.to<double>()](double t, double s) { return t + factor * s; }));
  } else {
    const auto factor = alpha.to<int64_t>();
    cpu::map_integers({&out, &same}, out, cpu::loop2<int64_t>([=](int64_t t, int64_t s) { return t + factor * s; }));
  }
}

void mul_inplace_cpu(const Tensor& out, const Tensor& x) {
  check_fits(out, x, "mul_");
  const Tensor same = cast(x, out.dtype());
  if (cpu::is_computed_in_float(out.dtype())) {
    cpu::map_floats({&out, &same}, out,
                    [](const cpu::FloatArrays& arrays) { cpu::binary_floats(BinaryOp::Mul, arrays); });
  } else if (out.dtype() == kFloat64) {
    cpu::map_doubles({&out, &same}, out, cpu::loop2<double>(Mul{}));
  } else {
    cpu::map_integers({&out, &same}, out, cpu::loop2<int64_t>(Mul{}));
  }
}

void scale_inplace_cpu(const Tensor& out, Scalar factor) {
  if (cpu::is_computed_in_float(out.dtype())) {
    const auto number = factor.to<float>();
    cpu::map_floats({&out}, out, [=](const cpu::FloatArrays& arrays) {
      cpu::binary_number_floats(BinaryOp::Mul, number, false, arrays);
    });
  } else if (out.dtype() == kFloat64) {
    cpu::map_doubles({&out}, out, cpu::loop1<double>([number = factor.to<double>()](double s) { return s * number; }));
  } else {
    const auto number = factor.to<int64_t>();
    cpu::map_integers({&out}, out, cpu::loop1<int64_t>([=](int64_t s) { return s * number; }));
  }
}

}  // namespace

constinit Kernel<void(const Tensor&, const Tensor&)> copy("copy", &copy_cpu);
constinit Kernel<void(const Tensor&, Scalar)> fill("fill", &fill_cpu);
constinit Kernel<void(const Tensor&, const Tensor&, Scalar)> add_inplace("add_inplace", &add_inplace_cpu);
constinit Kernel<void(const Tensor&, const Tensor&)> mul_inplace("mul_inplace", &mul_inplace_cpu);
constinit Kernel<void(const Tensor&, Scalar)> scale_inplace("scale_inplace", &scale_inplace_cpu);

}  // namespace brigade::kernels
