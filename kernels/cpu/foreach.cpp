// Foreach kernels on the CPU: one pass over the memory of all tensors (cpu/detail/multi_tensor.h). Tensors that are not
// contiguous are copied to a dense tensor and back.
#include <brigade/kernels/optimizer.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/optimizer.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/multi_tensor.h>
#include <brigade/kernels/cpu/vector/elementwise.h>
#include <brigade/kernels/cpu/vector/optimizer.h>
#include <brigade/kernels/elementwise.h>

#include <atomic>
#include <cmath>

namespace brigade::kernels {
namespace {

double number_in(const Tensor& scalar) { return detail::element_as_double(scalar, 0); }

DType check_dtype(std::span<const Tensor> tensors, const char* what) {
  const DType dtype = tensors.front().dtype();
  visit_floating(dtype, what, []<class T>() {});  // throws
  return dtype;
}

struct Dense {
  std::span<const Tensor> tensors;
  std::vector<Tensor> dense;
  std::vector<int64_t> numels;

  explicit Dense(std::span<const Tensor> all) : tensors(all) {
    for (const Tensor& tensor : all) {
      dense.push_back(contiguous(tensor));
      numels.push_back(tensor.numel());
    }
  }
  void copy_back() const {
    for (size_t i = 0; i < tensors.size(); ++i) {
      if (!tensors[i].is_contiguous()) copy(tensors[i], dense[i]);
    }
  }
};

// Calls body(elements, count, row) for pieces of the rows' elements, in float64 or float32: half types are converted,
// and converted back if `is_written`.
template <class Body>
void over(const Dense& rows, bool is_written, Body&& body) {
  const DType dtype = rows.tensors.front().dtype();
  cpu::for_pieces(rows.numels, [&](size_t row, int64_t begin, int64_t end) {
    void* const data = rows.dense[row].raw_data();
    if (dtype == kFloat64) return body(static_cast<double*>(data) + begin, end - begin, row, begin);
    if (dtype == kFloat32) return body(static_cast<float*>(data) + begin, end - begin, row, begin);
    float room[cpu::kPiece];
    for (; begin < end; begin += cpu::kPiece) {
      const int64_t count = std::min(cpu::kPiece, end - begin);
      char* const halves = static_cast<char*>(data) + begin * static_cast<int64_t>(itemsize(dtype));
      cpu::convert(dtype, halves, kFloat32, room, count);
      body(room, count, row, begin);
      if (is_written) cpu::convert(kFloat32, room, dtype, halves, count);
    }
  });
}

void scale(float* x, int64_t count, double factor) {
  const void* const in[] = {x};
  cpu::binary_number_floats(BinaryOp::Mul, static_cast<float>(factor), false, {kFloat32, in, x, count});
}
void scale(double* x, int64_t count, double factor) {
  for (int64_t i = 0; i < count; ++i)
    x[i] *= factor;
}
void clip(float* x, int64_t count, double bound) {
  const void* const in[] = {x};
  cpu::clamp_floats(-static_cast<float>(bound), static_cast<float>(bound), {kFloat32, in, x, count});
}
void clip(double* x, int64_t count, double bound) {
  for (int64_t i = 0; i < count; ++i)
    x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
}

// As unscale_floats().
bool unscale(float* x, int64_t count, double factor) {
  return cpu::unscale_floats(x, count, static_cast<float>(factor));
}
bool unscale(double* x, int64_t count, double factor) {
  bool bad = false;
  for (int64_t i = 0; i < count; ++i) {
    bad = bad || !std::isfinite(x[i]);
    x[i] *= factor;
  }
  return !bad;
}

void foreach_unscale_cpu(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  check_unscale(grads, inv_scale, found_inf);
  if (grads.empty()) return;
  check_dtype(grads, "foreach_unscale");
  const Dense rows(grads);
  std::atomic<bool> found = false;
  const double factor = number_in(inv_scale);
  if (factor == 1) {
    const DType dtype = grads.front().dtype();
    cpu::for_pieces(rows.numels, [&](size_t row, int64_t begin, int64_t end) {
      if (!cpu::all_finite(dtype, cpu::element(rows.dense[row], begin), end - begin))
        found.store(true, std::memory_order_relaxed);
    });
  } else {
    over(rows, true, [&](auto* x, int64_t count, size_t, int64_t) {
      if (!unscale(x, count, factor)) found.store(true, std::memory_order_relaxed);
    });
    rows.copy_back();
  }
  if (found) fill(found_inf, 1);
}

void foreach_scale_cpu(std::span<const Tensor> tensors, double factor, const Tensor& by) {
  check_scale(tensors, by);
  if (tensors.empty()) return;
  check_dtype(tensors, "foreach_scale");
  if (by.defined()) factor *= number_in(by);
  const Dense rows(tensors);
  over(rows, true, [&](auto* x, int64_t count, size_t, int64_t) { scale(x, count, factor); });
  rows.copy_back();
}

void foreach_clip_cpu(std::span<const Tensor> tensors, double bound) {
  check_clip(tensors, bound);
  if (tensors.empty()) return;
  const DType dtype = check_dtype(tensors, "foreach_clip");
  const Dense rows(tensors);
  // Round the bound to the dtype.
  const Tensor element = scalar_tensor<double>(bound);
  const double high = detail::element_as_double(cast(element, dtype), 0);
  over(rows, true, [&](auto* x, int64_t count, size_t, int64_t) { clip(x, count, high); });
  rows.copy_back();
}

// The term of one piece, computed in lanes that are combined in order.
constexpr int64_t kLanes = 16;
double together(NormTerm term, double a, double b) {
  if (term != NormTerm::MaxAbs) return a + b;
  return b > a || b != b ? b : a;  // a NaN stays: no comparison replaces it
}
template <NormTerm term, class T>
double measure(const T* x, int64_t count) {
  double lanes[kLanes] = {};
  const auto take = [](double& lane, T element) {
    const double value = static_cast<double>(element);
    if constexpr (term == NormTerm::SumOfSquares) {
      lane += value * value;
    } else if constexpr (term == NormTerm::SumOfAbs) {
      lane += std::abs(value);
    } else {
      const double size = std::abs(value);
      lane = size > lane || size != size ? size : lane;
    }
  };
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k)
      take(lanes[k], x[i + k]);
  }
  for (; i < count; ++i)
    take(lanes[i % kLanes], x[i]);
  double result = 0;
  for (const double lane : lanes)
    result = together(term, result, lane);
  return result;
}

void foreach_norm_cpu(std::span<const Tensor> tensors, NormTerm term, const Tensor& out) {
  check_norm(tensors, out);
  if (tensors.empty()) return;
  check_dtype(tensors, "foreach_norm");
  const Dense rows(tensors);
  // One result per piece, so that the order of additions does not depend on the threads.
  std::vector<std::vector<double>> pieces(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    pieces[i].resize(static_cast<size_t>((rows.numels[i] + cpu::kPiece - 1) / cpu::kPiece));
  over(rows, false, [&](const auto* x, int64_t count, size_t row, int64_t begin) {
    for (int64_t at = 0; at < count; at += cpu::kPiece) {
      const int64_t length = std::min(cpu::kPiece, count - at);
      double& result = pieces[row][static_cast<size_t>((begin + at) / cpu::kPiece)];
      switch (term) {
        case NormTerm::SumOfSquares: result = measure<NormTerm::SumOfSquares>(x + at, length); break;
        case NormTerm::SumOfAbs: result = measure<NormTerm::SumOfAbs>(x + at, length); break;
        case NormTerm::MaxAbs: result = measure<NormTerm::MaxAbs>(x + at, length); break;
      }
    }
  });
  for (size_t i = 0; i < tensors.size(); ++i) {
    double result = 0;
    for (const double piece : pieces[i])
      result = together(term, result, piece);
    static_cast<double*>(out.raw_data())[i] = result;
  }
}

}  // namespace

constinit Kernel<void(std::span<const Tensor>, const Tensor&, const Tensor&)> foreach_unscale("foreach_unscale",
                                                                                              &foreach_unscale_cpu);
constinit Kernel<void(std::span<const Tensor>, NormTerm, const Tensor&)> foreach_norm("foreach_norm",
                                                                                      &foreach_norm_cpu);
constinit Kernel<void(std::span<const Tensor>, double, const Tensor&)> foreach_scale("foreach_scale",
                                                                                     &foreach_scale_cpu);
constinit Kernel<void(std::span<const Tensor>, double)> foreach_clip("foreach_clip", &foreach_clip_cpu);

}  // namespace brigade::kernels
