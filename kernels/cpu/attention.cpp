// Attention on the CPU. Each tile of scores takes a matrix product, a softmax over its rows, and a second matrix
// product. Half types are computed in float32.
#include <brigade/kernels/attention.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/attention.h>
#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/cpu/vector/exponentials.h>
#include <brigade/kernels/elementwise.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace brigade::kernels {
namespace {

constexpr int64_t kQueryTile = 128;
constexpr int64_t kKeyTile = 256;

// A scratch buffer from the tensor allocator, which caches: no system allocation per step.
template <class C>
class Room {
 public:
  explicit Room(int64_t count) : tensor_(empty({count}, {dtype_of<C>})) {}
  C* data() const { return static_cast<C*>(tensor_.raw_data()); }

 private:
  Tensor tensor_;
};

template <class C>
struct Operand {
  const C* data;
  MatrixStrides strides;

  explicit Operand(const Tensor& x, int64_t group = 1)
      : data(static_cast<const C*>(x.raw_data())), strides(matrix_strides(x, group)) {}
  const C* row(const AttentionShape& shape, int64_t entry, int64_t row) const {
    return data + strides.start(shape, entry) + row * strides.row;
  }
};

// The largest element of a row; the sum of x = exp(x - shift), computed in place.
float largest_of(const float* x, int64_t n) { return cpu::largest_float(x, n); }
float exponentials(float* x, float shift, int64_t n) { return cpu::exp_floats(x, shift, x, n); }
double largest_of(const double* x, int64_t n) {
  double best = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i)
    best = x[i] > best ? x[i] : best;
  return best;
}
double exponentials(double* x, double shift, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i)
    sum += x[i] = std::exp(x[i] - shift);
  return sum;
}

// Query i, keys [first_key, first_key + count): turns products into scores, as Scores does for one element.
template <class C>
void score_row(const Scores<C>& scores, C* row, int64_t i, int64_t first_key, int64_t count) {
  constexpr C kNothing = -std::numeric_limits<C>::infinity();
  const int64_t seen = scores.is_causal ? std::clamp<int64_t>(i + 1 - first_key, 0, count) : count;
  const int64_t mask = i * scores.mask.row + first_key * scores.mask.column;
  const int64_t step = scores.mask.column;
  for (int64_t j = 0; j < seen; ++j)
    row[j] *= scores.scale;
  if (scores.bias) {
    for (int64_t j = 0; j < seen; ++j)
      row[j] += scores.bias[mask + j * step];
  } else if (scores.allowed) {
    for (int64_t j = 0; j < seen; ++j)
      row[j] = scores.allowed[mask + j * step] ? row[j] : kNothing;
  }
  std::fill(row + seen, row + count, kNothing);
}

// x *= the dropout mask, starting at element `first` of the stream.
template <class C>
void drop(const KeptProbabilities& kept, uint64_t first, C* x, int64_t count) {
  std::array<uint32_t, 4> words{};
  for (int64_t j = 0; j < count; ++j) {
    const uint64_t element = first + static_cast<uint64_t>(j);
    if (j == 0 || element % 4 == 0) words = kept.state.block(element / 4);
    x[j] = uniform_from_word(words[element % 4]) >= kept.threshold ? x[j] * static_cast<C>(kept.factor) : C(0);
  }
}

template <class C>
struct Forward {
  const AttentionPlan& plan;
  const AttentionShape& shape;
  Operand<C> q, k, v;
  C* out;
  C* logsumexp;

  Forward(const AttentionPlan& p, const Attention& result)
      : plan(p),
        shape(p.shape),
        q(p.q),
        k(p.k, p.key_group),
        v(p.v, p.value_group),
        out(static_cast<C*>(result.out.raw_data())),
        logsumexp(static_cast<C*>(result.logsumexp.raw_data())) {}

  // Queries [first, first + rows) of a batch entry; `weights` has room for kQueryTile * kKeyTile.
  void tile(int64_t entry, int64_t first, int64_t rows, C* weights) const {
    constexpr C kNothing = -std::numeric_limits<C>::infinity();
    std::array<C, kQueryTile> largest;
    std::array<C, kQueryTile> total{};
    largest.fill(kNothing);
    Scores<C> scores = scores_of<C>(plan);
    scores.move_to(shape, entry);
    const int64_t width = shape.value_width;
    C* const result = out + (entry * shape.queries + first) * width;
    std::fill(result, result + rows * width, C(0));
    const int64_t end = shape.keys_for(first + rows);
    for (int64_t key = 0; key < end; key += kKeyTile) {
      const int64_t count = std::min(kKeyTile, end - key);
      cpu::gemm(false, true, rows, count, shape.width, q.row(shape, entry, first), q.strides.row,
                k.row(shape, entry, key), k.strides.row, C(0), weights, count);
      for (int64_t r = 0; r < rows; ++r) {
        C* const row = weights + r * count;
        score_row(scores, row, first + r, key, count);
        const auto at = static_cast<size_t>(r);
        const C before = largest[at];
        largest[at] = std::max(before, largest_of(row, count));
        const C shift = softmax_shift(largest[at]);
        const C shrink = std::exp(before - shift);
        total[at] = total[at] * shrink + exponentials(row, shift, count);
        for (int64_t c = 0; c < width; ++c)
          result[r * width + c] *= shrink;
        if (!plan.kept.all()) {
          const int64_t element = (entry * shape.queries + first + r) * shape.keys + key;
          drop(plan.kept, static_cast<uint64_t>(element), row, count);
        }
      }
      cpu::gemm(false, false, rows, width, count, weights, count, v.row(shape, entry, key), v.strides.row, C(1), result,
                width);
    }
    for (int64_t r = 0; r < rows; ++r) {
      const C sum = total[static_cast<size_t>(r)];
      logsumexp[entry * shape.queries + first + r] = largest[static_cast<size_t>(r)] + std::log(sum);
      if (sum == C(0)) continue;  // zeros already
      for (int64_t c = 0; c < width; ++c)
        result[r * width + c] /= sum;
    }
  }
};

// One batch entry at a time, its tiles in a fixed order.
template <class C>
struct Backward {
  const AttentionPlan& plan;
  const AttentionShape& shape;
  Operand<C> grad, q, k, v, out;
  const C* logsumexp;
  AttentionGradients results;  // dense; only the wanted ones

  Backward(const AttentionPlan& p, const Tensor& g, const Attention& result, const AttentionGradients& gradients)
      : plan(p),
        shape(p.shape),
        grad(g),
        q(p.q),
        k(p.k, p.key_group),
        v(p.v, p.value_group),
        out(result.out),
        logsumexp(static_cast<const C*>(result.logsumexp.raw_data())),
        results(gradients) {}

  struct Scratch {
    Room<C> probabilities{kQueryTile * kKeyTile}, slopes{kQueryTile * kKeyTile}, dropped{kQueryTile * kKeyTile};
    Room<C> delta;  // per query: sum of grad * out
    explicit Scratch(const AttentionShape& shape) : delta(shape.queries) {}
  };

  static C* rows_of(const Tensor& gradient, int64_t first, int64_t width) {
    return static_cast<C*>(gradient.raw_data()) + first * width;
  }

  void batch_entry(int64_t entry, Scratch& scratch) const {
    const auto clear = [&](const Tensor& gradient, int64_t rows, int64_t width) {
      if (!gradient.defined()) return;
      C* const first = rows_of(gradient, entry * rows, width);
      std::fill(first, first + rows * width, C(0));
    };
    clear(results.q, shape.queries, shape.width);
    clear(results.k, shape.keys, shape.width);
    clear(results.v, shape.keys, shape.value_width);
    for (int64_t i = 0; i < shape.queries; ++i) {
      const C* const g = grad.row(shape, entry, i);
      const C* const y = out.row(shape, entry, i);
      C sum = 0;
      for (int64_t c = 0; c < shape.value_width; ++c)
        sum += g[c] * y[c];
      scratch.delta.data()[i] = sum;
    }
    // Square tiles waste less work on keys that causal queries do not attend to.
    const int64_t keys = shape.is_causal ? kQueryTile : kKeyTile;
    for (int64_t key = 0; key < shape.keys; key += keys) {
      const int64_t first = shape.is_causal ? key / kQueryTile * kQueryTile : 0;
      for (int64_t query = first; query < shape.queries; query += kQueryTile)
        tile(entry, query, std::min(kQueryTile, shape.queries - query), key, std::min(keys, shape.keys - key), scratch);
    }
  }

  void tile(int64_t entry, int64_t query, int64_t rows, int64_t key, int64_t count, Scratch& scratch) const {
    Scores<C> scores = scores_of<C>(plan);
    scores.move_to(shape, entry);
    C* const p = scratch.probabilities.data();
    const C* const grad_rows = grad.row(shape, entry, query);
    const C* const q_rows = q.row(shape, entry, query);
    const C* const k_rows = k.row(shape, entry, key);
    const auto element = [&](int64_t r) {
      return static_cast<uint64_t>((entry * shape.queries + query + r) * shape.keys + key);
    };
    cpu::gemm(false, true, rows, count, shape.width, q_rows, q.strides.row, k_rows, k.strides.row, C(0), p, count);
    for (int64_t r = 0; r < rows; ++r) {
      C* const row = p + r * count;
      score_row(scores, row, query + r, key, count);
      const C shift = softmax_shift(logsumexp[entry * shape.queries + query + r]);
      exponentials(row, shift, count);
    }
    if (results.v.defined()) {
      const C* weights = p;
      if (!plan.kept.all()) {
        C* const dropped = scratch.dropped.data();
        std::copy(p, p + rows * count, dropped);
        for (int64_t r = 0; r < rows; ++r)
          drop(plan.kept, element(r), dropped + r * count, count);
        weights = dropped;
      }
      cpu::gemm(true, false, count, shape.value_width, rows, weights, count, grad_rows, grad.strides.row, C(1),
                rows_of(results.v, entry * shape.keys + key, shape.value_width), shape.value_width);
    }
    if (!results.q.defined() && !results.k.defined() && !results.mask.defined()) return;
    C* const slopes = scratch.slopes.data();
    cpu::gemm(false, true, rows, count, shape.value_width, grad_rows, grad.strides.row, v.row(shape, entry, key),
              v.strides.row, C(0), slopes, count);
    for (int64_t r = 0; r < rows; ++r) {
      C* const row = slopes + r * count;
      if (!plan.kept.all()) drop(plan.kept, element(r), row, count);
      const C delta = scratch.delta.data()[query + r];
      for (int64_t j = 0; j < count; ++j)
        row[j] = p[r * count + j] * (row[j] - delta);
      if (results.mask.defined())
        std::copy_n(row, count, rows_of(results.mask, entry * shape.queries + query + r, shape.keys) + key);
      for (int64_t j = 0; j < count; ++j)
        row[j] *= static_cast<C>(shape.scale);
    }
    if (results.q.defined()) {
      cpu::gemm(false, false, rows, shape.width, count, slopes, count, k_rows, k.strides.row, C(1),
                rows_of(results.q, entry * shape.queries + query, shape.width), shape.width);
    }
    if (results.k.defined()) {
      cpu::gemm(true, false, count, shape.width, rows, slopes, count, q_rows, q.strides.row, C(1),
                rows_of(results.k, entry * shape.keys + key, shape.width), shape.width);
    }
  }
};

// The work per query, in cheap elements.
int64_t cost_of_query(const AttentionShape& shape) {
  return std::max<int64_t>(shape.keys * (shape.width + shape.value_width) / 16, 1);
}

void to_compute_dtype(AttentionPlan& plan) {
  plan.q = cast(plan.q, plan.compute_dtype);
  plan.k = cast(plan.k, plan.compute_dtype);
  plan.v = cast(plan.v, plan.compute_dtype);
}

template <class Body>
void with_compute_type(DType dtype, Body&& body) {
  if (dtype == kFloat64) {
    body.template operator()<double>();
  } else {
    body.template operator()<float>();
  }
}

Attention attention_cpu(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  AttentionPlan plan = prepare_attention(q, k, v, options);
  to_compute_dtype(plan);
  Attention result = empty_result(plan);
  const AttentionShape& shape = plan.shape;
  const int64_t tiles = (shape.queries + kQueryTile - 1) / kQueryTile;
  with_compute_type(plan.compute_dtype, [&]<class C>() {
    const Forward<C> forward(plan, result);
    cpu::parallel_for(
        shape.batches * tiles,
        [&](int64_t begin, int64_t end) {
          const Room<C> weights(kQueryTile * kKeyTile);
          for (int64_t t = begin; t < end; ++t) {
            const int64_t first = t % tiles * kQueryTile;
            forward.tile(t / tiles, first, std::min(kQueryTile, shape.queries - first), weights.data());
          }
        },
        std::min(kQueryTile, shape.queries) * cost_of_query(shape));
  });
  result.out = cast(result.out, q.dtype());
  return result;
}

AttentionGradients attention_backward_cpu(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                          const Attention& result, const AttentionOptions& options,
                                          AttentionWanted wanted) {
  AttentionPlan plan = prepare_attention(q, k, v, options);
  const Tensor slope = cast(prepare_attention_gradient(grad, result), plan.compute_dtype);
  const Attention forward{cast(result.out, plan.compute_dtype), result.logsumexp};
  to_compute_dtype(plan);
  AttentionGradients gradients = empty_gradients(plan, wanted);
  with_compute_type(plan.compute_dtype, [&]<class C>() {
    const Backward<C> backward(plan, slope, forward, gradients);
    cpu::parallel_for(
        plan.shape.batches,
        [&](int64_t begin, int64_t end) {
          typename Backward<C>::Scratch scratch(plan.shape);
          for (int64_t entry = begin; entry < end; ++entry)
            backward.batch_entry(entry, scratch);
        },
        plan.shape.queries * cost_of_query(plan.shape));
  });
  finish_gradients(plan, options, gradients);
  for (Tensor* gradient : {&gradients.q, &gradients.k, &gradients.v}) {
    if (gradient->defined()) *gradient = cast(*gradient, q.dtype());
  }
  return gradients;
}

}  // namespace

constinit Kernel<Attention(const Tensor&, const Tensor&, const Tensor&, const AttentionOptions&)> attention(
    "scaled_dot_product_attention", &attention_cpu);
constinit Kernel<AttentionGradients(const Tensor&, const Tensor&, const Tensor&, const Tensor&, const Attention&,
                                    const AttentionOptions&, AttentionWanted)>
    attention_backward("scaled_dot_product_attention_backward", &attention_backward_cpu);

}  // namespace brigade::kernels
