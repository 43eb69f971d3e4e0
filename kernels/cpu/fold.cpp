// Unfold and fold on the CPU, a plane at a time; half types are summed in float32.
#include <brigade/kernels/conv.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/conv.h>
#include <brigade/kernels/cpu/detail/columns.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

cpu::ColumnsOfPlane plane_of(const FoldPlan& plan) {
  return {plan.height,        plan.width,          plan.out_h,          plan.out_w, plan.params.kernel_size,
          plan.params.stride, plan.params.padding, plan.params.dilation};
}

template <class Body>
void for_each_plane(const FoldPlan& plan, Body&& body) {
  cpu::parallel_for(
      plan.planes,
      [&](int64_t begin, int64_t end) {
        for (int64_t plane = begin; plane < end; ++plane)
          body(plane);
      },
      plan.elements());
}

Tensor unfold2d_cpu(const Tensor& x, const FoldParams& params) {
  const FoldPlan plan = prepare_unfold(x, params);
  const cpu::ColumnsOfPlane plane = plane_of(plan);
  const Tensor source = contiguous(x);
  visit_floating(x.dtype(), "unfold", [&]<class T>() {
    const T* from = static_cast<const T*>(source.raw_data());
    T* to = static_cast<T*>(plan.result.raw_data());
    for_each_plane(
        plan, [&](int64_t p) { cpu::plane_to_columns(plane, from + p * plan.pixels(), to + p * plan.elements()); });
  });
  return plan.result;
}

Tensor fold2d_cpu(const Tensor& columns, const std::array<int64_t, 2>& output_size, const FoldParams& params) {
  const FoldPlan plan = prepare_fold(columns, output_size, params);
  const cpu::ColumnsOfPlane plane = plane_of(plan);
  const Tensor source = contiguous(columns);
  // Added up in the compute type and rounded once.
  const Tensor sums = empty(plan.result.sizes(), is_half(columns.dtype()) ? kFloat32 : columns.dtype());
  fill(sums, 0);
  visit_floating(columns.dtype(), "fold", [&]<class T>() {
    const T* from = static_cast<const T*>(source.raw_data());
    auto* to = static_cast<compute_type<T>*>(sums.raw_data());
    for_each_plane(
        plan, [&](int64_t p) { cpu::add_columns_to_plane(plane, from + p * plan.elements(), to + p * plan.pixels()); });
  });
  return cast(sums, columns.dtype());
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, const FoldParams&)> unfold2d("unfold2d", &unfold2d_cpu);
constinit Kernel<Tensor(const Tensor&, const std::array<int64_t, 2>&, const FoldParams&)> fold2d("fold2d", &fold2d_cpu);

}  // namespace brigade::kernels
