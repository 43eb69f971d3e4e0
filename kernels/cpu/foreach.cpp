// One pass over the memory of all tensors (cpu/detail/multi_tensor.h). What is not contiguous is copied to a dense
// tensor and back.
#include <brigade/kernels/foreach.h>

#include <brigade/kernels/cpu/detail/multi_tensor.h>
#include <brigade/kernels/detail/foreach_checks.h>
#include <brigade/kernels/elementwise.h>

#include <atomic>
#include <cmath>

namespace brigade::kernels {

namespace {

double number_in(const Tensor& scalar) { return detail::element_as_double(scalar, 0); }

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

// Calls body(first, count, row) for pieces of the rows' elements.
template <class T, class Body>
void over(const Dense& rows, Body&& body) {
  cpu::for_pieces(rows.numels, [&](size_t row, int64_t begin, int64_t end) {
    body(static_cast<T*>(rows.dense[row].raw_data()) + begin, end - begin, row);
  });
}

template <class T>
void scale(T* x, int64_t count, compute_type<T> factor) {
  for (int64_t i = 0; i < count; ++i)
    x[i] = static_cast<T>(static_cast<compute_type<T>>(x[i]) * factor);
}

void foreach_unscale_cpu(std::span<const Tensor> grads, const Tensor& inv_scale, const Tensor& found_inf) {
  check_unscale(grads, inv_scale, found_inf);
  if (grads.empty()) return;
  const Dense rows(grads);
  std::atomic<bool> found = false;
  const double factor = number_in(inv_scale);
  visit_floating(grads.front().dtype(), "foreach_unscale", [&]<class T>() {
    using C = compute_type<T>;
    over<T>(rows, [&](T* x, int64_t count, size_t) {
      // x - x is not 0 where x is not finite.
      C bad = 0;
      for (int64_t i = 0; i < count; ++i) {
        const C value = static_cast<C>(x[i]);
        bad = value - value == C(0) ? bad : C(1);
      }
      if (bad != C(0)) found.store(true, std::memory_order_relaxed);
      scale(x, count, static_cast<C>(factor));
    });
  });
  rows.copy_back();
  if (found) fill(found_inf, 1);
}

void foreach_scale_cpu(std::span<const Tensor> tensors, double factor, const Tensor& by) {
  check_scale(tensors, by);
  if (tensors.empty()) return;
  if (by.defined()) factor *= number_in(by);
  const Dense rows(tensors);
  visit_floating(tensors.front().dtype(), "foreach_scale", [&]<class T>() {
    over<T>(rows, [&](T* x, int64_t count, size_t) { scale(x, count, static_cast<compute_type<T>>(factor)); });
  });
  rows.copy_back();
}

void foreach_clip_cpu(std::span<const Tensor> tensors, double bound) {
  check_clip(tensors, bound);
  if (tensors.empty()) return;
  const Dense rows(tensors);
  visit_floating(tensors.front().dtype(), "foreach_clip", [&]<class T>() {
    using C = compute_type<T>;
    const C high = static_cast<C>(static_cast<T>(static_cast<C>(bound)));
    over<T>(rows, [&](T* x, int64_t count, size_t) {
      for (int64_t i = 0; i < count; ++i) {
        const C value = static_cast<C>(x[i]);
        x[i] = static_cast<T>(value > high ? high : value < -high ? -high : value);
      }
    });
  });
  rows.copy_back();
}

// The term of one piece, over lanes that are put together in order.
constexpr int64_t kLanes = 16;
double together(NormTerm term, double a, double b) {
  if (term != NormTerm::MaxAbs) return a + b;
  return b > a || b != b ? b : a;  // a NaN stays: nothing is larger
}
template <NormTerm term, class T>
double measure(const T* x, int64_t count) {
  double lanes[kLanes] = {};
  const auto take = [](double& lane, T element) {
    const double value = static_cast<double>(static_cast<compute_type<T>>(element));
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
  const Dense rows(tensors);
  // Of each piece, so that the order of additions does not depend on the threads.
  std::vector<std::vector<double>> pieces(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i)
    pieces[i].resize(static_cast<size_t>((rows.numels[i] + cpu::kPiece - 1) / cpu::kPiece));
  visit_floating(tensors.front().dtype(), "foreach_norm", [&]<class T>() {
    over<T>(rows, [&](const T* x, int64_t count, size_t row) {
      const T* first = static_cast<const T*>(rows.dense[row].raw_data());
      for (int64_t at = 0; at < count; at += cpu::kPiece) {
        const int64_t length = std::min(cpu::kPiece, count - at);
        const T* piece = x + at;
        double& result = pieces[row][static_cast<size_t>((piece - first) / cpu::kPiece)];
        switch (term) {
          case NormTerm::SumOfSquares: result = measure<NormTerm::SumOfSquares>(piece, length); break;
          case NormTerm::SumOfAbs: result = measure<NormTerm::SumOfAbs>(piece, length); break;
          case NormTerm::MaxAbs: result = measure<NormTerm::MaxAbs>(piece, length); break;
        }
      }
    });
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
