// Triangles on the CPU: part of each row is copied as bytes, the rest is set to zero.
#include <brigade/kernels/elementwise.h>

#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cpu/detail/parallel.h>

#include <cstring>

namespace brigade::kernels {
namespace {

// The bits of 0 are zero in every dtype.
Tensor triangle_cpu(const Tensor& x, Triangle part, int64_t diagonal) {
  const TrianglePlan plan = plan_triangle(x, part, diagonal);
  Tensor result = empty(x.sizes(), x.options());
  if (x.numel() == 0) return result;
  const Tensor source = contiguous(x);
  const auto* const from = static_cast<const char*>(source.raw_data());
  auto* const to = static_cast<char*>(result.raw_data());
  const auto bytes = static_cast<int64_t>(x.itemsize());
  const int64_t row_bytes = plan.columns * bytes;
  cpu::parallel_for(
      x.numel() / plan.columns,
      [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t first = plan.first(row % plan.rows) * bytes;
          const int64_t last = plan.last(row % plan.rows) * bytes;
          char* const target = to + row * row_bytes;
          std::memset(target, 0, static_cast<size_t>(first));
          if (last > first)
            std::memcpy(target + first, from + row * row_bytes + first, static_cast<size_t>(last - first));
          std::memset(target + last, 0, static_cast<size_t>(row_bytes - last));
        }
      },
      plan.columns);
  return result;
}

}  // namespace

constinit Kernel<Tensor(const Tensor&, Triangle, int64_t)> triangle("triangle", &triangle_cpu);

}  // namespace brigade::kernels
