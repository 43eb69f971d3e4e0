// CUDA kernels of where: one kernel per element size.
#include <brigade/core/view.h>
#include <brigade/kernels/common/elementwise.h>
#include <brigade/kernels/cuda/detail/map.h>

namespace brigade::kernels {
namespace {

using cuda::kMapThreads;
using cuda::Vector;

// One operand: elements, or a single number if `data` is null.
template <class Word>
struct Side {
  const Word* data;
  Word number;

  template <int length>
  __device__ Vector<Word, length> load(int64_t at) const {
    if (data) return cuda::load_vector<Word, length>(data + at);
    Vector<Word, length> same;
    for (int k = 0; k < length; ++k)
      same.values[k] = number;
    return same;
  }
  __device__ Word operator[](int64_t at) const { return data ? data[at] : number; }
};

// Each thread processes the elements of one 16-byte vector.
template <int length, class Word>
__global__ void __launch_bounds__(kMapThreads)
    where_kernel(int64_t count, const bool* condition, Side<Word> a, Side<Word> b, Word* out) {
  const int64_t first = (static_cast<int64_t>(blockIdx.x) * kMapThreads + threadIdx.x) * length;
  if (first + length <= count) {
    const Vector<bool, length> chosen = cuda::load_vector<bool, length>(condition + first);
    const Vector<Word, length> left = a.template load<length>(first);
    const Vector<Word, length> right = b.template load<length>(first);
    Vector<Word, length> result;
#pragma unroll
    for (int k = 0; k < length; ++k)
      result.values[k] = chosen.values[k] ? left.values[k] : right.values[k];
    cuda::store_vector<Word, length>(out + first, result);
    return;
  }
  for (int64_t i = first; i < count; ++i)
    out[i] = condition[i] ? a[i] : b[i];
}

template <class Word>
__global__ void __launch_bounds__(kMapThreads)
    where_strided_kernel(uint32_t count, cuda::DeviceStrides<4> strides, const bool* condition, Side<Word> a,
                         Side<Word> b, Word* out) {
  for (int u = 0; u < cuda::kStridedItems; ++u) {
    const uint32_t i = (blockIdx.x * cuda::kStridedItems + static_cast<uint32_t>(u)) * kMapThreads + threadIdx.x;
    if (i >= count) return;
    int64_t at[4];
    strides.offsets(i, at);
    out[at[3]] = condition[at[0]] ? a[at[1]] : b[at[2]];
  }
}

bool can_load_vectors(const Tensor& x, const Tensor& out) {
  return !x.defined() || (cuda::is_dense(x, out) && cuda::start_aligned({&x}));
}

Tensor where_cuda(const Tensor& condition, const Choice& a, const Choice& b) {
  const ChoicePlan plan = prepare_where(condition, a, b);
  const Tensor& out = plan.out;
  if (out.numel() == 0) return out;
  const bool dense = can_load_vectors(condition, out) && can_load_vectors(plan.a, out) && can_load_vectors(plan.b, out);
  visit_words(out.dtype(), [&]<class Word>() {
    const auto side = [&](const Tensor& x, Scalar number) {
      return Side<Word>{x.defined() ? static_cast<const Word*>(x.raw_data()) : nullptr,
                        word_of<Word>(number, out.dtype())};
    };
    const Side<Word> left = side(plan.a, a.number);
    const Side<Word> right = side(plan.b, b.number);
    const bool* const chosen = static_cast<const bool*>(condition.raw_data());
    Word* const to = static_cast<Word*>(out.raw_data());
    constexpr int kLength = cuda::kVectorLength<Word>;
    if (dense) {
      cuda::launch({"where", cuda::blocks_for(out.numel(), kMapThreads * kLength), kMapThreads}, out.device(),
                   &where_kernel<kLength, Word>, out.numel(), chosen, left, right, to);
      return;
    }
    const Tensor none = view::as_strided(out, {}, {}, 0);
    const StridedLayout<4> layout(
        out.sizes(), {&condition, plan.a.defined() ? &plan.a : &none, plan.b.defined() ? &plan.b : &none, &out});
    const auto moved = [](Side<Word> from, int64_t by) {
      if (from.data) from.data += by;
      return from;
    };
    for (const auto& [strides, count, at] : cuda::strided_parts<4>(layout)) {
      cuda::launch({"where", cuda::blocks_for(count, kMapThreads * cuda::kStridedItems), kMapThreads}, out.device(),
                   &where_strided_kernel<Word>, count, strides, chosen + at[0], moved(left, at[1]), moved(right, at[2]),
                   to + at[3]);
    }
  });
  return out;
}

const AddKernel add_where(where, kCUDA, &where_cuda);

}  // namespace
}  // namespace brigade::kernels
