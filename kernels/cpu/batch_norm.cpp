// Batch norm on the CPU, a strip of channels at a time: moments, normalization and gradients.
#include <brigade/core/factory.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cpu/detail/conversion.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/sums.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace brigade::kernels {
namespace {

// Element c of a per-channel tensor of any floating dtype; `otherwise` when it is undefined.
double channel(const Tensor& tensor, int64_t c, double otherwise) {
  return tensor.defined() ? detail::element_as_double(tensor, c) : otherwise;
}

void store(const Tensor& tensor, int64_t c, double value) {
  visit_floating(tensor.dtype(), "batch_norm", [&]<class T>() {
    static_cast<T*>(tensor.raw_data())[c] = static_cast<T>(static_cast<compute_type<T>>(value));
  });
}

// Half types are computed in float32: one strip at a time if one process has the whole batch, as whole tensors if
// several processes have parts of it.
Tensor widened(const Tensor& x) { return x.defined() && is_half(x.dtype()) ? cast(x, kFloat32) : x; }
BatchNormPlan widened(BatchNormPlan plan) {
  plan.x = widened(plan.x);
  if (plan.result.y.defined() && is_half(plan.result.y.dtype())) plan.result.y = empty(plan.x.sizes(), kFloat32);
  return plan;
}
BatchNormGradientPlan widened(BatchNormGradientPlan plan) {
  plan.grad = widened(plan.grad);
  plan.x = widened(plan.x);
  return plan;
}
BatchNorm narrowed(BatchNorm result, DType dtype) {
  result.y = cast(result.y, dtype);
  return result;
}
template <class Body>
void visit_wide(DType dtype, Body&& body) {
  if (dtype == kFloat64) return body.template operator()<double>();
  body.template operator()<float>();
}

// A strip is a run of adjacent channels processed together. A channel with many contiguous values is a strip of its
// own, and loops run along its values. Else loops run along the values of all channels of the strip, each of which is a
// column.
constexpr int64_t kLongArea = 32;
constexpr int64_t kColumns = 256;
constexpr int64_t kGroup = 16;  // rows of columns that are summed in the compute type

struct Strip {
  int64_t first, count;  // channels
  int64_t columns;       // 1 for a strip of a single long channel
  int64_t at;            // the first channel's index among the channels in memory
};

template <class Body>
void for_strips(const BatchNormLayout& layout, Body&& body) {
  const bool alone = layout.area >= kLongArea;
  const int64_t channels = alone ? 1 : kColumns / std::max<int64_t>(layout.area, 1);
  cpu::parallel_for((layout.channels + channels - 1) / channels,
                    [&](int64_t begin, int64_t end) {
                      for (int64_t i = begin; i < end; ++i) {
                        const int64_t count = std::min(channels, layout.channels - i * channels);
                        body(Strip{i * channels, count, alone ? 1 : count * layout.area, i * channels});
                      }
                    },
                    layout.count() * channels);
}

// The values of a strip in the compute type: in place, or for half types as a dense copy. A copy is in one of the two
// scratch rooms of the thread, which all its strips reuse.
template <class C>
class StripValues {
 public:
  // `room`: 0 or 1. With `read` = false the copy is not initialized, for values that are only written.
  StripValues(const Tensor& tensor, const BatchNormLayout& layout, const Strip& strip, int room, bool read = true)
      : tensor_(tensor), whole_(layout), place_(strip.at), layout_(layout), strip_(strip) {
    if (!is_half(tensor.dtype())) {
      data_ = static_cast<C*>(tensor.raw_data());
      return;
    }
    layout_.channels = strip.count;
    strip_.at = 0;
    thread_local std::vector<C> rooms[2];
    rooms[room].resize(static_cast<size_t>(layout.batch * width()));
    data_ = rooms[room].data();
    for (int64_t n = 0; read && n < whole_.batch; ++n)
      cpu::read_elements(tensor_, row_in_tensor(n), dtype_of<C>, data_ + n * width(), width());
  }
  const BatchNormLayout& layout() const { return layout_; }
  const Strip& strip() const { return strip_; }
  C* data() const { return data_; }
  // For half types: rounds the copy and writes it back to the tensor.
  void put_back() const {
    if (!is_half(tensor_.dtype())) return;
    for (int64_t n = 0; n < whole_.batch; ++n)
      cpu::write_elements(dtype_of<C>, data_ + n * width(), tensor_, row_in_tensor(n), width());
  }

 private:
  int64_t width() const { return strip_.count * layout_.area; }
  int64_t row_in_tensor(int64_t n) const { return (n * whole_.channels + place_) * whole_.area; }

  const Tensor& tensor_;
  const BatchNormLayout& whole_;  // layout of the tensor
  int64_t place_;                 // position of the strip in the tensor
  BatchNormLayout layout_;        // layout of the values
  Strip strip_;
  C* data_ = nullptr;
};

// Expands one number per channel to one per column.
template <class C>
struct Columns {
  C values[kColumns];

  template <class F>
  Columns(const Strip& strip, F&& of_channel) {
    const int64_t each = strip.columns / strip.count;
    for (int64_t c = 0; c < strip.count; ++c) {
      const C value = static_cast<C>(of_channel(c));
      for (int64_t i = 0; i < each; ++i)
        values[c * each + i] = value;
    }
  }
  C operator[](int64_t column) const { return values[column]; }
};

// sums[c] = sum over the values of the strip's channel c of f(position, column), along the columns.
template <class C, class F>
void column_sums(const BatchNormLayout& layout, const Strip& strip, double* sums, F f) {
  std::fill_n(sums, strip.count, 0.0);
  C group[kColumns];
  double total[kColumns] = {};
  for (int64_t first = 0; first < layout.batch; first += kGroup) {
    std::fill_n(group, strip.columns, C(0));
    for (int64_t n = first; n < std::min(layout.batch, first + kGroup); ++n) {
      const int64_t row = (n * layout.channels + strip.at) * layout.area;
      for (int64_t j = 0; j < strip.columns; ++j)
        group[j] += f(row + j, j);
    }
    for (int64_t j = 0; j < strip.columns; ++j)
      total[j] += static_cast<double>(group[j]);
  }
  for (int64_t j = 0; j < strip.columns; ++j)
    sums[j / layout.area] += total[j];
}

// The same for any strip; a single long channel is summed by plane(first position, count).
template <class C, class Plane, class F>
void strip_sums(const BatchNormLayout& layout, const Strip& strip, double* sums, Plane plane, F f) {
  if (strip.columns > 1) return column_sums<C>(layout, strip, sums, f);
  sums[0] = 0;
  for (int64_t n = 0; n < layout.batch; ++n)
    sums[0] += plane((n * layout.channels + strip.at) * layout.area, layout.area);
}

// f(position, column) for all values of the strip; plane(first position, count) for a single long channel.
template <class Plane, class F>
void strip_each(const BatchNormLayout& layout, const Strip& strip, Plane plane, F f) {
  for (int64_t n = 0; n < layout.batch; ++n) {
    const int64_t row = (n * layout.channels + strip.at) * layout.area;
    if (strip.columns == 1) {
      plane(row, layout.area);
    } else {
      for (int64_t j = 0; j < strip.columns; ++j)
        f(row + j, j);
    }
  }
}

// Means and sums of squared distances from the mean, for the channels of a strip.
struct Moments {
  double mean[kColumns] = {}, squares[kColumns] = {};
};

// The moments of the values, from one pass over their distances from a center near the mean; the sum of distances
// corrects the sum of squares. The center is the mean of at least the first 1/32 of the batch, so the squares are at
// most 32 times the result and lose at most 5 of 24 bits, and usually none. For a short batch the center is the mean of
// the whole batch.
template <class C>
Moments moments_of(const BatchNormLayout& layout, const Strip& strip, const C* in) {
  const auto count = static_cast<double>(layout.count());
  Moments result;
  if (count == 0) return result;
  BatchNormLayout part = layout;
  constexpr int64_t kShort = 1024;
  part.batch = std::min(layout.batch, std::max((layout.batch + 31) / 32, kShort / std::max<int64_t>(layout.area, 1)));
  double part_sum[kColumns] = {};
  strip_sums<C>(
      part, strip, part_sum, [=](int64_t first, int64_t n) { return cpu::sum(in + first, n); },
      [=](int64_t i, int64_t) { return in[i]; });
  const Columns<C> center(strip, [&](int64_t c) { return part_sum[c] / static_cast<double>(part.count()); });
  double shift[kColumns] = {};
  if (strip.columns == 1) {
    for (int64_t n = 0; n < layout.batch; ++n) {
      const cpu::DistanceSums sums =
          cpu::sum_distances_and_squares(in + (n * layout.channels + strip.at) * layout.area, center[0], layout.area);
      shift[0] += sums.distances;
      result.squares[0] += sums.squares;
    }
  } else {
    column_sums<C>(layout, strip, shift, [=, &center](int64_t i, int64_t column) { return in[i] - center[column]; });
    column_sums<C>(layout, strip, result.squares, [=, &center](int64_t i, int64_t column) {
      const C d = in[i] - center[column];
      return d * d;
    });
  }
  const int64_t each = strip.columns / strip.count;
  for (int64_t c = 0; c < strip.count; ++c) {
    result.mean[c] = static_cast<double>(center[c * each]) + shift[c] / count;
    const double squares = result.squares[c] - shift[c] * shift[c] / count;
    result.squares[c] = squares < 0 ? 0 : squares;  // NaNs propagate
  }
  return result;
}

// Updates the running statistics with the statistics of a batch of `count` values.
void move_running(const Tensor& running_mean, const Tensor& running_var, const Strip& strip, const Moments& batch,
                  double count, double momentum) {
  for (int64_t i = 0; i < strip.count; ++i) {
    const int64_t c = strip.first + i;
    if (running_mean.defined())
      store(running_mean, c, (1 - momentum) * channel(running_mean, c, 0) + momentum * batch.mean[i]);
    if (running_var.defined()) {
      const double unbiased = batch.squares[i] / count * count / (count - 1);
      store(running_var, c, (1 - momentum) * channel(running_var, c, 1) + momentum * unbiased);
    }
  }
}

// Normalizes channels with these means and variances, and stores the statistics in `result`.
template <class C>
void normalise(const BatchNormLayout& layout, const Strip& strip, const C* in, C* out, const Tensor& weight,
               const Tensor& bias, const double* mean, const double* variance, double eps, const BatchNorm& result) {
  double invstd[kColumns];
  for (int64_t c = 0; c < strip.count; ++c) {
    invstd[c] = 1 / std::sqrt(variance[c] + eps);
    store(result.mean, strip.first + c, mean[c]);
    store(result.invstd, strip.first + c, invstd[c]);
  }
  const Columns<C> scale(strip, [&](int64_t c) { return channel(weight, strip.first + c, 1) * invstd[c]; });
  const Columns<C> shift(strip, [&](int64_t c) { return channel(bias, strip.first + c, 0); });
  const Columns<C> center(strip, [&](int64_t c) { return mean[c]; });
  strip_each(
      layout, strip,
      [=, &scale, &shift, &center](int64_t first, int64_t n) {
        cpu::normalize(in + first, center[0], scale[0], shift[0], out + first, n);
      },
      [=, &scale, &shift, &center](int64_t i, int64_t column) {
        out[i] = (in[i] - center[column]) * scale[column] + shift[column];
      });
}

BatchNorm batch_norm_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                         const Tensor& running_var, bool training, double momentum, double eps) {
  const BatchNormPlan plan = prepare_batch_norm(x, weight, bias, running_mean, running_var);
  check_batch_norm_mode(plan, running_mean, running_var, training);
  if (training && plan.layout.count() == 0) return batch_norm_of_nothing(plan);
  const auto count = static_cast<double>(plan.layout.count());
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(plan.layout, [&](const Strip& strip) {
      const StripValues<T> in(plan.x, plan.layout, strip, 0);
      const StripValues<T> out(plan.result.y, plan.layout, strip, 0, false);  // in the place of `in`
      Moments used;
      if (training) {
        used = moments_of<T>(in.layout(), in.strip(), in.data());
        move_running(running_mean, running_var, strip, used, count, momentum);
      }
      for (int64_t c = 0; c < strip.count; ++c) {
        if (!training) used.mean[c] = channel(running_mean, strip.first + c, 0);
        used.squares[c] = training ? used.squares[c] / count : channel(running_var, strip.first + c, 1);
      }
      normalise<T>(in.layout(), in.strip(), in.data(), out.data(), weight, bias, used.mean, used.squares, eps,
                   plan.result);
      out.put_back();
    });
  });
  return plan.result;
}

Tensor batch_norm_moments_cpu(const Tensor& x) {
  const BatchNormPlan plan = widened(prepare_batch_norm_moments(x));
  const BatchNormLayout& layout = plan.layout;
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const means = result.data_ptr<double>();
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(layout, [&](const Strip& strip) {
      const Moments batch = moments_of<T>(layout, strip, static_cast<const T*>(plan.x.raw_data()));
      std::copy_n(batch.mean, strip.count, means + strip.first);
      std::copy_n(batch.squares, strip.count, means + layout.channels + strip.first);
    });
  });
  return result;
}

Tensor batch_norm_combine_cpu(const Tensor& rows) {
  const BatchNormRows all = prepare_batch_norm_combine(rows);
  auto* const means = all.result.data_ptr<double>();
  auto* const squares = means + all.channels;
  std::fill_n(means, 2 * all.channels, 0.0);
  double total = 0;
  for (int64_t r = 0; r < all.batches; ++r) {
    const double* const row = all.rows.data_ptr<double>() + r * (2 * all.channels + 1);
    const double added = row[2 * all.channels];
    if (added == 0) continue;
    if (total == 0) {  // nothing to combine with: copy without rounding
      std::copy_n(row, 2 * all.channels, means);
      total = added;
      continue;
    }
    for (int64_t c = 0; c < all.channels; ++c) {
      const double distance = row[c] - means[c];
      means[c] += distance * (added / (total + added));
      squares[c] += row[all.channels + c] + distance * distance * (total * added / (total + added));
    }
    total += added;
  }
  return all.result;
}

BatchNorm batch_norm_apply_cpu(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
                               const Tensor& running_var, const Tensor& moments, int64_t count, double momentum,
                               double eps) {
  const BatchNormPlan plan = widened(prepare_batch_norm(x, weight, bias, running_mean, running_var));
  check_batch_norm_pairs(moments, x, "moments");
  const auto* const means = moments.data_ptr<double>();
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(plan.layout, [&](const Strip& strip) {
      Moments batch;
      std::copy_n(means + strip.first, strip.count, batch.mean);
      std::copy_n(means + plan.layout.channels + strip.first, strip.count, batch.squares);
      move_running(running_mean, running_var, strip, batch, static_cast<double>(count), momentum);
      for (int64_t c = 0; c < strip.count; ++c)
        batch.squares[c] /= static_cast<double>(count);
      normalise(plan.layout, strip, static_cast<const T*>(plan.x.raw_data()), plan.result.y.data_ptr<T>(), weight, bias,
                batch.mean, batch.squares, eps, plan.result);
    });
  });
  return narrowed(plan.result, x.dtype());
}

// Sums of the gradient, and of the gradient times the normalized x.
struct GradientSums {
  double sum[kColumns] = {}, dot[kColumns] = {};
};

template <class C>
GradientSums gradient_sums(const BatchNormLayout& layout, const Strip& strip, const C* slope, const C* in,
                           const Tensor& mean, const Tensor& invstd) {
  GradientSums result;
  const Columns<C> center(strip, [&](int64_t c) { return channel(mean, strip.first + c, 0); });
  strip_sums<C>(
      layout, strip, result.sum, [=](int64_t first, int64_t n) { return cpu::sum(slope + first, n); },
      [=](int64_t i, int64_t) { return slope[i]; });
  strip_sums<C>(
      layout, strip, result.dot,
      [=, &center](int64_t first, int64_t n) { return cpu::dot_distances(slope + first, in + first, center[0], n); },
      [=, &center](int64_t i, int64_t column) { return slope[i] * (in[i] - center[column]); });
  for (int64_t c = 0; c < strip.count; ++c)
    result.dot[c] *= channel(invstd, strip.first + c, 1);
  return result;
}

// dx = w * invstd * (g - mean(g) - xhat * mean(g * xhat)), the means over `count` values.
template <class C>
void input_gradient(const BatchNormLayout& layout, const Strip& strip, const C* slope, const C* in, C* out,
                    const Tensor& weight, const Tensor& mean, const Tensor& invstd, const GradientSums& sums,
                    double count) {
  const auto scale = [&](int64_t c) { return channel(invstd, strip.first + c, 1); };
  const Columns<C> gain(strip, [&](int64_t c) { return channel(weight, strip.first + c, 1) * scale(c); });
  const Columns<C> mean_slope(strip, [&](int64_t c) { return sums.sum[c] / count; });
  const Columns<C> mean_dot(strip, [&](int64_t c) { return sums.dot[c] / count * scale(c); });
  const Columns<C> center(strip, [&](int64_t c) { return channel(mean, strip.first + c, 0); });
  strip_each(
      layout, strip,
      [=, &gain, &mean_slope, &mean_dot, &center](int64_t first, int64_t n) {
        cpu::norm_gradient(slope + first, in + first, center[0], gain[0], C(1), mean_slope[0], mean_dot[0], out + first,
                           n);
      },
      [=, &gain, &mean_slope, &mean_dot, &center](int64_t i, int64_t column) {
        out[i] = gain[column] * (slope[i] - mean_slope[column] - (in[i] - center[column]) * mean_dot[column]);
      });
}

BatchNormGrads batch_norm_backward_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                       const Tensor& invstd, bool training) {
  const BatchNormGradientPlan plan = prepare_batch_norm_gradient(grad, x, weight, mean, invstd);
  const BatchNormLayout& layout = plan.layout;
  if (layout.count() == 0) return batch_norm_gradients_of_nothing(plan);
  BatchNormGrads result{empty(x.sizes(), plan.x.dtype()), empty({layout.channels}, plan.parameter_dtype),
                        empty({layout.channels}, plan.parameter_dtype)};
  const auto count = static_cast<double>(layout.count());
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(layout, [&](const Strip& strip) {
      const StripValues<T> in(plan.x, layout, strip, 0);
      const StripValues<T> slope(plan.grad, layout, strip, 1);
      const StripValues<T> out(result.x, layout, strip, 0, false);  // in the place of `in`
      const GradientSums sums = gradient_sums<T>(in.layout(), in.strip(), slope.data(), in.data(), mean, invstd);
      for (int64_t c = 0; c < strip.count; ++c) {
        store(result.weight, strip.first + c, sums.dot[c]);
        store(result.bias, strip.first + c, sums.sum[c]);
      }
      // With fixed statistics only the first term remains.
      input_gradient<T>(in.layout(), in.strip(), slope.data(), in.data(), out.data(), weight, mean, invstd,
                        training ? sums : GradientSums{}, count);
      out.put_back();
    });
  });
  return result;
}

Tensor batch_norm_gradient_sums_cpu(const Tensor& grad, const Tensor& x, const Tensor& mean, const Tensor& invstd) {
  const BatchNormGradientPlan plan = widened(prepare_batch_norm_gradient(grad, x, Tensor(), mean, invstd));
  const BatchNormLayout& layout = plan.layout;
  const Tensor result = empty({2, layout.channels}, kFloat64);
  auto* const out = result.data_ptr<double>();
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(layout, [&](const Strip& strip) {
      const GradientSums sums = gradient_sums(layout, strip, static_cast<const T*>(plan.grad.raw_data()),
                                              static_cast<const T*>(plan.x.raw_data()), mean, invstd);
      std::copy_n(sums.sum, strip.count, out + strip.first);
      std::copy_n(sums.dot, strip.count, out + layout.channels + strip.first);
    });
  });
  return result;
}

Tensor batch_norm_input_gradient_cpu(const Tensor& grad, const Tensor& x, const Tensor& weight, const Tensor& mean,
                                     const Tensor& invstd, const Tensor& sums, int64_t count) {
  const BatchNormGradientPlan plan = widened(prepare_batch_norm_gradient(grad, x, weight, mean, invstd));
  const BatchNormLayout& layout = plan.layout;
  check_batch_norm_pairs(sums, x, "sums of gradients");
  const Tensor result = empty(x.sizes(), plan.x.dtype());
  const auto* const of_channel = sums.data_ptr<double>();
  visit_wide(x.dtype(), [&]<class T>() {
    for_strips(layout, [&](const Strip& strip) {
      GradientSums used;
      std::copy_n(of_channel + strip.first, strip.count, used.sum);
      std::copy_n(of_channel + layout.channels + strip.first, strip.count, used.dot);
      input_gradient(layout, strip, static_cast<const T*>(plan.grad.raw_data()),
                     static_cast<const T*>(plan.x.raw_data()), static_cast<T*>(result.raw_data()), weight, mean, invstd,
                     used, static_cast<double>(count));
    });
  });
  return cast(result, x.dtype());
}

}  // namespace

constinit Kernel<BatchNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool, double,
                           double)>
    batch_norm("batch_norm", &batch_norm_cpu);
constinit Kernel<BatchNormGrads(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, bool)>
    batch_norm_backward("batch_norm_backward", &batch_norm_backward_cpu);
constinit Kernel<Tensor(const Tensor&)> batch_norm_moments("batch_norm_moments", &batch_norm_moments_cpu);
constinit Kernel<Tensor(const Tensor&)> batch_norm_combine("batch_norm_combine", &batch_norm_combine_cpu);
constinit Kernel<BatchNorm(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                           int64_t, double, double)>
    batch_norm_apply("batch_norm_apply", &batch_norm_apply_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&)> batch_norm_gradient_sums(
    "batch_norm_gradient_sums", &batch_norm_gradient_sums_cpu);
constinit Kernel<Tensor(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Tensor&,
                        int64_t)>
    batch_norm_input_gradient("batch_norm_input_gradient", &batch_norm_input_gradient_cpu);

}  // namespace brigade::kernels
