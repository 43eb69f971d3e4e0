// Reductions over each channel of [batch, channels, area]. A block takes one channel, or a piece of it if there are few
// long channels; if a channel has only a few contiguous values, a block takes 32 channels. The results of pieces are
// combined in their order, which depends on the shape alone.
//
// V: the state of a channel after some of its values, a struct of doubles with an overload of shuffle_xor, and
//   void store_pair(double* pairs, int64_t channels, int64_t c, const V& value);
// that writes the result [2, channels].
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/common/normalization.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/cuda/detail/vector.h>

#include <algorithm>
#include <type_traits>

namespace brigade::kernels::cuda {

inline constexpr int kChannelThreads = 256;
inline constexpr int kChannelGroups = kChannelThreads / kWarp;  // groups of values if a block takes 32 channels
inline constexpr int64_t kShortArea = 8;                        // below it a block takes 32 channels
inline constexpr int64_t kChannelBlocks = 1024;                 // enough for any device
inline constexpr int kChannelVectors = 4;                       // in flight per thread

// The channel and the values that a thread takes: a channel of `units` vectors is split into pieces.
template <bool many_channels>
struct ChannelShare {
  int64_t channel, first, end;
  static constexpr int kStep = many_channels ? kChannelGroups : kChannelThreads;
  __device__ ChannelShare(int64_t units, int64_t piece)
      : channel(many_channels ? static_cast<int64_t>(blockIdx.x) * kWarp + threadIdx.x : blockIdx.x),
        first(blockIdx.y * piece + (many_channels ? threadIdx.y : threadIdx.x)),
        end(::min(units, (blockIdx.y + 1) * piece)) {}
};

// Calls body(offsets) for each kStep-th vector of a channel, several at a time; offsets in
// elements.
template <int length, bool many_channels, class Body>
__device__ void for_values(const BatchNormLayout& layout, const ChannelShare<many_channels>& share, Body body) {
  constexpr int64_t kStep = ChannelShare<many_channels>::kStep;
  if (share.first >= share.end) return;        // an empty plane has no width to divide by
  const int64_t width = layout.area / length;  // vectors per plane
  int64_t plane = share.first / width;
  int64_t at = share.first - plane * width;
  const int64_t planes = kStep / width;
  const int64_t rest = kStep - planes * width;
  const auto next = [&] {
    const int64_t offset = (plane * layout.channels + share.channel) * layout.area + at * length;
    plane += planes;
    at += rest;
    if (at >= width) {
      at -= width;
      ++plane;
    }
    return offset;
  };
  int64_t i = share.first;
  for (; i + (kChannelVectors - 1) * kStep < share.end; i += kChannelVectors * kStep) {
    int64_t offsets[kChannelVectors];
    for (int u = 0; u < kChannelVectors; ++u)
      offsets[u] = next();
    body(offsets);
  }
  for (; i < share.end; i += kStep) {
    const int64_t offset[1] = {next()};
    body(offset);
  }
}

template <int length, int n, class T>
__device__ void load_values(const T* from, const int64_t (&offsets)[n], compute_type<T> (&values)[n * length]) {
  Vector<T, length> vectors[n];
#pragma unroll
  for (int u = 0; u < n; ++u)
    vectors[u] = load_vector<T, length>(from + offsets[u]);
#pragma unroll
  for (int u = 0; u < n; ++u) {
#pragma unroll
    for (int k = 0; k < length; ++k)
      values[u * length + k] = static_cast<compute_type<T>>(vectors[u].values[k]);
  }
}

// Combines the values of a block's threads per channel and stores them to `partial` [pieces, C], or to the result if
// there is only one piece.
template <bool many_channels, class V, class F>
__device__ void finish_block(int64_t channels, int64_t channel, V value, F combine, V* partial, double* pairs) {
  if constexpr (many_channels) {
    BRIGADE_SHARED(V, groups, [kChannelGroups][kWarp]);
    groups[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.y != 0) return;
    for (int g = 1; g < kChannelGroups; ++g)
      value = combine(value, groups[g][threadIdx.x]);
  } else {
    BRIGADE_SHARED(V, warps, [kChannelThreads / kWarp]);
    value = block_reduce(value, combine, &warps[0]);
    if (threadIdx.x != 0) return;
  }
  if (channel >= channels) return;
  if (gridDim.y == 1) {
    store_pair(pairs, channels, channel, value);
  } else {
    partial[blockIdx.y * channels + channel] = value;
  }
}

// Combines the pieces, with one warp per channel.
template <class V, class F>
__global__ void __launch_bounds__(kChannelThreads)
    combine_pieces_kernel(int64_t channels, int64_t pieces, F combine, const V* partial, double* pairs) {
  const int64_t c = static_cast<int64_t>(blockIdx.x) * kChannelGroups + threadIdx.y;
  if (c >= channels) return;  // returns whole warps
  V value{};
  for (int64_t p = threadIdx.x; p < pieces; p += kWarp)
    value = combine(value, partial[p * channels + c]);
  value = warp_reduce(value, combine);
  if (threadIdx.x == 0) store_pair(pairs, channels, c, value);
}

// --- on the host

// The launch configuration of a channel reduction.
struct ChannelSplit {
  bool many_channels = false, vectors = false;
  int64_t pieces = 1, piece = 1;  // `piece` in vectors
  dim3 grid, block;
};

inline ChannelSplit split_channels(const BatchNormLayout& layout, int length, bool aligned) {
  ChannelSplit result;
  result.many_channels = layout.area < kShortArea;
  result.vectors = !result.many_channels && aligned && layout.area % length == 0;
  const int64_t columns = result.many_channels ? (layout.channels + kWarp - 1) / kWarp : layout.channels;
  const int64_t units = layout.count() / (result.vectors ? length : 1);
  // At least two rounds of full chunks per thread, if there are enough values.
  const int64_t enough = 2 * kChannelVectors * (result.many_channels ? kChannelGroups : kChannelThreads);
  const int64_t most = std::max<int64_t>(1, kChannelBlocks / std::max<int64_t>(1, columns));
  result.pieces = std::clamp<int64_t>(units / enough, 1, most);
  result.piece = std::max<int64_t>(1, (units + result.pieces - 1) / result.pieces);
  result.pieces = std::max<int64_t>(1, (units + result.piece - 1) / result.piece);
  result.grid = dim3(static_cast<unsigned>(columns), static_cast<unsigned>(result.pieces));
  result.block = result.many_channels ? dim3(kWarp, kChannelGroups) : dim3(kChannelThreads);
  return result;
}

// Computes [2, C] with a kernel over the values of each channel and a kernel that combines the pieces. `run` gets
// whether a block takes one or many channels, the vector length, and the buffer for the pieces.
template <class T, class V, class F, class Run>
Tensor reduce_channels(const BatchNormLayout& layout, Device device, bool aligned, F combine, Run run) {
  constexpr int kLength = kVectorBytes / static_cast<int>(sizeof(T));
  const ChannelSplit how = split_channels(layout, kLength, aligned);
  const Tensor pairs = empty({2, layout.channels}, {kFloat64, device});
  auto* const result = static_cast<double*>(pairs.raw_data());
  constexpr int64_t kNumbers = sizeof(V) / sizeof(double);
  const Tensor room = empty({how.pieces > 1 ? how.pieces : 0, layout.channels, kNumbers}, {kFloat64, device});
  auto* const partial = static_cast<V*>(room.raw_data());
  using One = std::bool_constant<false>;
  using Many = std::bool_constant<true>;
  if (how.many_channels) {
    run(Many{}, std::integral_constant<int, 1>{}, how, partial, result);
  } else if (how.vectors) {
    run(One{}, std::integral_constant<int, kLength>{}, how, partial, result);
  } else {
    run(One{}, std::integral_constant<int, 1>{}, how, partial, result);
  }
  if (how.pieces > 1) {
    launch({"combine_pieces", blocks_for(layout.channels, kChannelGroups), dim3(kWarp, kChannelGroups)}, device,
           &combine_pieces_kernel<V, F>, layout.channels, how.pieces, combine, partial, result);
  }
  return pairs;
}

}  // namespace brigade::kernels::cuda
