// CUDA kernels of attention.h. A block of 256 threads owns a tile of rows (queries, or keys in backward) and iterates
// over the tiles of the other side; products are plain multiply-adds in the compute type (no tensor cores).
#include <brigade/kernels/attention.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/common/arguments.h>
#include <brigade/kernels/cuda/detail/attention_tiles.h>

#include <cmath>

namespace brigade::kernels {
namespace {

using cuda::kTileSide;
using cuda::kTileThreads;
using cuda::tile_stride;
using cuda::TileSource;

// Tile sizes. A block uses at most 99 KiB of shared memory, which every device of compute capability 8.0 or higher has,
// except backward in float64 with more than 128 columns (135 KiB). D: columns of a tile.
struct TileSizes {
  int rows;    // of the block's own tile, per thread; 16 times as many in total
  int others;  // rows of a tile of the other side
};
template <class C>
constexpr TileSizes forward_tiles(int D) {
  if (sizeof(C) == sizeof(float)) return D <= 128 ? TileSizes{4, 64} : TileSizes{2, 32};
  return D <= 128 ? TileSizes{2, 32} : TileSizes{1, 16};
}
template <class C>
constexpr TileSizes backward_tiles(int D) {
  if (sizeof(C) == sizeof(float)) return D <= 64 ? TileSizes{4, 64} : D <= 128 ? TileSizes{4, 16} : TileSizes{1, 16};
  return D <= 64 ? TileSizes{2, 32} : TileSizes{1, 16};
}

// Shared memory for the given numbers of tiles of each side, one tile of weights, and one of dropout bytes.
template <class C>
constexpr size_t shared_bytes(TileSizes tiles, int D, int own_matrices, int other_matrices) {
  const int own = tiles.rows * kTileSide;
  const int numbers =
      (own_matrices * own + other_matrices * tiles.others) * tile_stride<C>(D) + own * tile_stride<C>(tiles.others);
  return sizeof(C) * static_cast<size_t>(numbers) + static_cast<size_t>(own * tiles.others);
}

struct LargerOf {
  template <class C>
  __device__ C operator()(C a, C b) const {
    return b > a ? b : a;
  }
};

// One tile of queries per block: q stays in shared memory, keys and values share one buffer in turns. The longest rows
// of a causal mask come first.
template <class T, int D>
__global__ void __launch_bounds__(kTileThreads, 2)
    attention_kernel(AttentionShape shape, TileSource<T> q, TileSource<T> k, TileSource<T> v,
                     Scores<compute_type<T>> scores, KeptProbabilities kept, T* out, compute_type<T>* logsumexp) {
  using C = compute_type<T>;
  constexpr TileSizes kSizes = forward_tiles<C>(D);
  constexpr int R = kSizes.rows;
  constexpr int kQueries = R * kTileSide;
  constexpr int kKeys = kSizes.others;
  constexpr int N = kKeys / kTileSide;
  constexpr C kNothing = -std::numeric_limits<C>::infinity();
  BRIGADE_DYNAMIC_SHARED(C, shared);
  C* const q_tile = shared;
  C* const other_tile = q_tile + kQueries * tile_stride<C>(D);
  C* const weights = other_tile + kKeys * tile_stride<C>(D);
  auto* const flags = reinterpret_cast<unsigned char*>(weights + kQueries * tile_stride<C>(kKeys));

  const int64_t tiles = (shape.queries + kQueries - 1) / kQueries;
  const int64_t entry = blockIdx.x / tiles;
  const int64_t first = (tiles - 1 - blockIdx.x % tiles) * kQueries;
  const T* const k_matrix = k.matrix(shape, entry);
  const T* const v_matrix = v.matrix(shape, entry);
  scores.move_to(shape, entry);
  cuda::load_tile<kQueries, D>(q_tile, q.matrix(shape, entry), q, first, shape.queries);

  C sums[R][D / kTileSide] = {};
  C largest[R];
  C total[R];  // for this thread's columns
#pragma unroll
  for (int r = 0; r < R; ++r) {
    largest[r] = kNothing;
    total[r] = C(0);
  }
  const int64_t end = shape.keys_for(first + kQueries);
  for (int64_t key = 0; key < end; key += kKeys) {
    __syncthreads();  // the previous values have been read
    cuda::load_tile<kKeys, D>(other_tile, k_matrix, k, key, shape.keys);
    if (!kept.all()) cuda::make_kept_flags<kQueries, kKeys, kKeys, 1>(flags, kept, shape, entry, first, key);
    __syncthreads();
    C p[R][N];
    cuda::multiply_rows<D>(p, q_tile, other_tile, shape.width);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int row = cuda::tile_row() * R + r;
      C highest = largest[r];
#pragma unroll
      for (int n = 0; n < N; ++n) {
        p[r][n] = scores(p[r][n], first + row, key + n * kTileSide + cuda::tile_column());
        highest = LargerOf{}(highest, p[r][n]);
      }
      highest = cuda::reduce_tile_row(highest, LargerOf{});
      const C shift = softmax_shift(highest);
      const C shrink = std::exp(largest[r] - shift);
      largest[r] = highest;
      total[r] *= shrink;
#pragma unroll
      for (int c = 0; c < D / kTileSide; ++c)
        sums[r][c] *= shrink;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const int column = n * kTileSide + cuda::tile_column();
        C weight = std::exp(p[r][n] - shift);
        total[r] += weight;
        if (!kept.all()) weight *= flags[row * kKeys + column] != 0 ? static_cast<C>(kept.factor) : C(0);
        weights[row * tile_stride<C>(kKeys) + column] = weight;
      }
    }
    __syncthreads();  // the keys have been read
    cuda::load_tile<kKeys, D>(other_tile, v_matrix, v, key, shape.keys);
    __syncthreads();
    cuda::add_weighted_rows<D, kKeys>(sums, weights, other_tile, static_cast<int>(::min(int64_t{kKeys}, end - key)));
  }
  C factors[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const C sum = cuda::reduce_tile_row(total[r], cuda::SumOf{});
    factors[r] = sum == C(0) ? C(0) : C(1) / sum;
    const int64_t row = first + cuda::tile_row() * R + r;
    if (cuda::tile_column() == 0 && row < shape.queries)
      logsumexp[entry * shape.queries + row] = largest[r] + std::log(sum);
  }
  cuda::store_rows<D, R>(out + entry * shape.queries * shape.value_width, first, shape.queries, shape.value_width, sums,
                         factors);
}

// delta = sum of grad * out; one warp per row.
constexpr int kRowsPerBlock = 4;
template <class T>
__global__ void __launch_bounds__(cuda::kWarp* kRowsPerBlock)
    attention_delta_kernel(AttentionShape shape, TileSource<T> grad, const T* out, compute_type<T>* delta) {
  using C = compute_type<T>;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * kRowsPerBlock + threadIdx.y;
  if (row >= shape.batches * shape.queries) return;
  const T* const g = grad.matrix(shape, row / shape.queries) + row % shape.queries * grad.strides.row;
  const T* const y = out + row * shape.value_width;
  C sum = C(0);
  for (int c = static_cast<int>(threadIdx.x); c < shape.value_width; c += cuda::kWarp)
    sum += static_cast<C>(g[c]) * static_cast<C>(y[c]);
  sum = cuda::warp_reduce(sum, cuda::SumOf{});
  if (threadIdx.x == 0) delta[row] = sum;
}

// One tile per block, of queries (score sides: q and k; value sides: grad and v; results: gradients of q and of the
// mask) or of keys (k and q; v and grad; gradients of k and v). Recomputes the probabilities p from logsumexp; their
// gradients are p * (grad v^T - delta). Sums stay in the block.
template <class T, int D, bool of_keys>
__global__ void __launch_bounds__(kTileThreads, D * sizeof(compute_type<T>) < 2048 ? 2 : 1)
    attention_backward_kernel(AttentionShape shape, TileSource<T> score_side, TileSource<T> value_side,
                              TileSource<T> other_score_side, TileSource<T> other_value_side,
                              Scores<compute_type<T>> scores, KeptProbabilities kept, const compute_type<T>* logsumexp,
                              const compute_type<T>* delta, T* score_gradient, T* value_gradient,
                              compute_type<T>* mask_gradient) {
  using C = compute_type<T>;
  constexpr TileSizes kSizes = backward_tiles<C>(D);
  constexpr int R = kSizes.rows;
  constexpr int kOwn = R * kTileSide;
  constexpr int kOthers = kSizes.others;
  constexpr int N = kOthers / kTileSide;
  BRIGADE_DYNAMIC_SHARED(C, shared);
  C* const score_tile = shared;
  C* const value_tile = score_tile + kOwn * tile_stride<C>(D);
  C* const other_score_tile = value_tile + kOwn * tile_stride<C>(D);
  C* const other_value_tile = other_score_tile + kOthers * tile_stride<C>(D);
  C* const weights = other_value_tile + kOthers * tile_stride<C>(D);
  auto* const flags = reinterpret_cast<unsigned char*>(weights + kOwn * tile_stride<C>(kOthers));

  const int64_t own_end = of_keys ? shape.keys : shape.queries;
  const int64_t tiles = (own_end + kOwn - 1) / kOwn;
  const int64_t entry = blockIdx.x / tiles;
  // The longest rows of a causal mask come first: the last queries, the first keys.
  const int64_t first = (of_keys ? blockIdx.x % tiles : tiles - 1 - blockIdx.x % tiles) * kOwn;
  const T* const other_scores = other_score_side.matrix(shape, entry);
  const T* const other_values = other_value_side.matrix(shape, entry);
  logsumexp += entry * shape.queries;
  delta += entry * shape.queries;
  scores.move_to(shape, entry);
  cuda::load_tile<kOwn, D>(score_tile, score_side.matrix(shape, entry), score_side, first, own_end);
  cuda::load_tile<kOwn, D>(value_tile, value_side.matrix(shape, entry), value_side, first, own_end);

  C score_sums[R][D / kTileSide] = {};
  C value_sums[R][D / kTileSide] = {};
  // With a causal mask, a key is seen only by queries from its own position on.
  const int64_t begin = of_keys && shape.is_causal ? first / kOthers * kOthers : 0;
  const int64_t end = of_keys ? shape.queries : shape.keys_for(first + kOwn);
  const int64_t others = of_keys ? shape.queries : shape.keys;
  for (int64_t other = begin; other < end; other += kOthers) {
    __syncthreads();  // the previous tiles have been read
    cuda::load_tile<kOthers, D>(other_score_tile, other_scores, other_score_side, other, others);
    cuda::load_tile<kOthers, D>(other_value_tile, other_values, other_value_side, other, others);
    if (!kept.all()) {
      if constexpr (of_keys) {
        cuda::make_kept_flags<kOthers, kOwn, 1, kOthers>(flags, kept, shape, entry, other, first);
      } else {
        cuda::make_kept_flags<kOwn, kOthers, kOthers, 1>(flags, kept, shape, entry, first, other);
      }
    }
    __syncthreads();
    C p[R][N];
    C slopes[R][N];
    cuda::multiply_rows<D>(p, score_tile, other_score_tile, shape.width);
    cuda::multiply_rows<D>(slopes, value_tile, other_value_tile, shape.value_width);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      const int row = cuda::tile_row() * R + r;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        const int column = n * kTileSide + cuda::tile_column();
        const int64_t i = of_keys ? other + column : first + row;
        const int64_t j = of_keys ? first + row : other + column;
        const bool inside = i < shape.queries;
        const C score = scores(p[r][n], i, j);
        const C probability = std::exp(score - softmax_shift(inside ? logsumexp[i] : C(0)));
        const C factor = kept.all() || flags[row * kOthers + column] != 0 ? static_cast<C>(kept.factor) : C(0);
        slopes[r][n] = probability * (slopes[r][n] * factor - (inside ? delta[i] : C(0)));
        if constexpr (!of_keys) {
          if (mask_gradient && inside && j < shape.keys)
            mask_gradient[(entry * shape.queries + i) * shape.keys + j] = slopes[r][n];
        }
        weights[row * tile_stride<C>(kOthers) + column] = of_keys ? probability * factor : slopes[r][n];
      }
    }
    const int count = static_cast<int>(::min(int64_t{kOthers}, end - other));
    // Each warp uses only the weights of its own rows.
    __syncwarp();
    if constexpr (of_keys) {
      cuda::add_weighted_rows<D, kOthers>(value_sums, weights, other_value_tile, count);
      __syncwarp();
#pragma unroll
      for (int r = 0; r < R; ++r) {
#pragma unroll
        for (int n = 0; n < N; ++n)
          weights[(cuda::tile_row() * R + r) * tile_stride<C>(kOthers) + n * kTileSide + cuda::tile_column()] =
              slopes[r][n];
      }
      __syncwarp();
    }
    cuda::add_weighted_rows<D, kOthers>(score_sums, weights, other_score_tile, count);
  }
  C factors[R];
#pragma unroll
  for (int r = 0; r < R; ++r)
    factors[r] = static_cast<C>(shape.scale);
  if (score_gradient)
    cuda::store_rows<D, R>(score_gradient + entry * own_end * shape.width, first, own_end, shape.width, score_sums,
                           factors);
  if constexpr (of_keys) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      factors[r] = C(1);
    if (value_gradient)
      cuda::store_rows<D, R>(value_gradient + entry * own_end * shape.value_width, first, own_end, shape.value_width,
                             value_sums, factors);
  }
}

// --- on the host

template <class T>
TileSource<T> source_of(const Tensor& x, const AttentionShape& shape, int64_t group = 1) {
  TileSource<T> source{static_cast<const T*>(x.raw_data()), matrix_strides(x, group), static_cast<int>(x.size(-1)),
                       true};
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  source.vectors =
      cuda::is_aligned(source.data, kLength) && source.width % kLength == 0 && source.strides.row % kLength == 0;
  for (int d = 0; d < kMaxBatchDims; ++d)
    source.vectors = source.vectors && (shape.batch_sizes[d] == 1 || source.strides.batch[d] % kLength == 0);
  return source;
}

// Calls body with the number of columns that tiles have.
template <class Body>
void with_tile_columns(const AttentionShape& shape, Body&& body) {
  const int width = std::max(shape.width, shape.value_width);
  if (width <= 32) {
    body.template operator()<32>();
  } else if (width <= 64) {
    body.template operator()<64>();
  } else if (width <= 128) {
    body.template operator()<128>();
  } else if (width <= 256) {
    body.template operator()<256>();
  } else {
    throw ShapeError(
        "scaled_dot_product_attention: expected widths up to 256 on CUDA, got {} (query, key) and {} (value); "
        "compute it with matmul and softmax",
        shape.width, shape.value_width);
  }
}

Attention attention_cuda(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options) {
  const AttentionPlan plan = prepare_attention(q, k, v, options);
  Attention result = empty_result(plan);
  const AttentionShape& shape = plan.shape;
  visit_floating(q.dtype(), "scaled_dot_product_attention", [&]<class T>() {
    using C = compute_type<T>;
    with_tile_columns(shape, [&]<int D>() {
      constexpr TileSizes kSizes = forward_tiles<C>(D);
      const unsigned tiles = cuda::blocks_for(shape.queries, kSizes.rows * kTileSide);
      cuda::launch_with_shared({"scaled_dot_product_attention", static_cast<unsigned>(shape.batches) * tiles,
                                kTileThreads, shared_bytes<C>(kSizes, D, 1, 1)},
                               q.device(), &attention_kernel<T, D>, shape, source_of<T>(plan.q, shape),
                               source_of<T>(plan.k, shape, plan.key_group),
                               source_of<T>(plan.v, shape, plan.value_group), scores_of<C>(plan), plan.kept,
                               static_cast<T*>(result.out.raw_data()), static_cast<C*>(result.logsumexp.raw_data()));
    });
  });
  return result;
}

AttentionGradients attention_backward_cuda(const Tensor& grad, const Tensor& q, const Tensor& k, const Tensor& v,
                                           const Attention& result, const AttentionOptions& options,
                                           AttentionWanted wanted) {
  const AttentionPlan plan = prepare_attention(q, k, v, options);
  const Tensor slope = prepare_attention_gradient(grad, result);
  AttentionGradients gradients = empty_gradients(plan, wanted);
  const Tensor delta = empty_like(result.logsumexp);
  const AttentionShape& shape = plan.shape;
  visit_floating(q.dtype(), "scaled_dot_product_attention_backward", [&]<class T>() {
    using C = compute_type<T>;
    const TileSource<T> q_source = source_of<T>(plan.q, shape);
    const TileSource<T> k_source = source_of<T>(plan.k, shape, plan.key_group);
    const TileSource<T> v_source = source_of<T>(plan.v, shape, plan.value_group);
    const TileSource<T> grad_source = source_of<T>(slope, shape);
    const Scores<C> scores = scores_of<C>(plan);
    const C* const logsumexp = static_cast<const C*>(result.logsumexp.raw_data());
    C* const deltas = static_cast<C*>(delta.raw_data());
    cuda::launch({"attention_delta", cuda::blocks_for(shape.batches * shape.queries, kRowsPerBlock),
                  dim3(cuda::kWarp, kRowsPerBlock)},
                 q.device(), &attention_delta_kernel<T>, shape, grad_source,
                 static_cast<const T*>(result.out.raw_data()), deltas);
    with_tile_columns(shape, [&]<int D>() {
      constexpr TileSizes kSizes = backward_tiles<C>(D);
      const auto launch = [&](const char* what, int64_t rows, auto kernel, auto... arguments) {
        const unsigned tiles = cuda::blocks_for(rows, kSizes.rows * kTileSide);
        cuda::launch_with_shared(
            {what, static_cast<unsigned>(shape.batches) * tiles, kTileThreads, shared_bytes<C>(kSizes, D, 2, 2)},
            q.device(), kernel, shape, arguments...);
      };
      if (wanted.q || wanted.mask) {
        launch("attention_backward of queries", shape.queries, &attention_backward_kernel<T, D, false>, q_source,
               grad_source, k_source, v_source, scores, plan.kept, logsumexp, deltas, data_or_null<T>(gradients.q),
               static_cast<T*>(nullptr), data_or_null<C>(gradients.mask));
      }
      if (wanted.k || wanted.v) {
        launch("attention_backward of keys", shape.keys, &attention_backward_kernel<T, D, true>, k_source, v_source,
               q_source, grad_source, scores, plan.kept, logsumexp, deltas, data_or_null<T>(gradients.k),
               data_or_null<T>(gradients.v), static_cast<C*>(nullptr));
      }
    });
  });
  finish_gradients(plan, options, gradients);
  return gradients;
}

const AddKernel add_attention(attention, kCUDA, &attention_cuda);
const AddKernel add_attention_backward(attention_backward, kCUDA, &attention_backward_cuda);

}  // namespace
}  // namespace brigade::kernels
