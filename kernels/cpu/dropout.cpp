// Dropout on the CPU: each block of the random stream covers four elements.
#include <brigade/kernels/activation.h>

#include <brigade/core/factory.h>
#include <brigade/kernels/cpu/detail/parallel.h>
#include <brigade/kernels/elementwise.h>

namespace brigade::kernels {
namespace {

Tensor dropout_cpu(const Tensor& x, double p, PhiloxState state) {
  check_dropout_probability(p);
  const Tensor source = contiguous(x);
  Tensor result = empty(x.sizes(), x.options());
  const double scale = p == 1 ? 0 : 1 / (1 - p);
  visit_floating(x.dtype(), "dropout", [&]<class T>() {
    using C = compute_type<T>;
    const T* in = static_cast<const T*>(source.raw_data());
    T* out = static_cast<T*>(result.raw_data());
    const auto threshold = static_cast<float>(p);
    const int64_t blocks = (x.numel() + 3) / 4;
    cpu::parallel_for(
        blocks,
        [&](int64_t begin, int64_t end) {
          for (int64_t block = begin; block < end; ++block) {
            const auto words = state.block(static_cast<uint64_t>(block));
            for (int64_t i = 4 * block; i < std::min(x.numel(), 4 * block + 4); ++i) {
              const bool kept = uniform_from_word(words[static_cast<size_t>(i % 4)]) >= threshold;
              out[i] = kept ? static_cast<T>(static_cast<C>(in[i]) * static_cast<C>(scale)) : T(0.0F);
            }
          }
        },
        32);
  });
  return result;
}

}  // namespace

void check_dropout_probability(double p) {
  if (!(p >= 0 && p <= 1)) throw ValueError("dropout: the probability must be between 0 and 1, got {}", p);
}

constinit Kernel<Tensor(const Tensor&, double, PhiloxState)> dropout("dropout", &dropout_cpu);

}  // namespace brigade::kernels
