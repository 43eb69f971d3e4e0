// A stand-in for cuBLASLt.
#include "stand_in.h"

#include <brigade/kernels/cpu/detail/gemm.h>
#include <brigade/kernels/cuda/detail/gemm.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace brigade::kernels::cuda {
namespace {

using test::require;
using test::require_on_device;

// Rounds to 10 fraction bits, to nearest.
float to_tf32(float x) { return std::bit_cast<float>((std::bit_cast<uint32_t>(x) + 0x1000U) & 0xffffe000U); }

// Copies rows of T to a dense matrix in the compute type.
template <class T>
std::vector<compute_type<T>> gather(const T* x, int64_t rows, int64_t columns, int64_t row, bool tf32) {
  std::vector<compute_type<T>> dense;
  dense.reserve(static_cast<size_t>(rows * columns));
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      auto value = static_cast<compute_type<T>>(x[i * row + j]);
      if constexpr (std::is_same_v<T, float>) value = tf32 ? to_tf32(value) : value;
      dense.push_back(value);
    }
  }
  return dense;
}

// As cuBLASLt defines them: max(x, 0), which maps NaN to 0, and tanh GELU.
template <class C>
C activated(FusedActivation activation, C x) {
  if (activation == FusedActivation::Relu) return x > C(0) ? x : C(0);
  return x / 2 * (1 + std::tanh(C(0.7978845608028654) * (x + C(0.044715) * x * x * x)));
}

template <class T>
void compute(const GemmCall& call) {
  using C = compute_type<T>;
  const GemmShape& s = call.shape;
  const auto* bias = static_cast<const T*>(call.bias);
  for (int64_t batch = 0; batch < s.batches; ++batch) {
    const auto a = gather(static_cast<const T*>(call.a) + batch * s.a_batch, s.transpose_a ? s.k : s.m,
                          s.transpose_a ? s.m : s.k, s.a_row, s.tf32);
    const auto b = gather(static_cast<const T*>(call.b) + batch * s.b_batch, s.transpose_b ? s.n : s.k,
                          s.transpose_b ? s.k : s.n, s.b_row, s.tf32);
    std::vector<C> product(static_cast<size_t>(s.m * s.n));
    cpu::gemm(s.transpose_a, s.transpose_b, s.m, s.n, s.k, a.data(), s.transpose_a ? s.m : s.k, b.data(),
              s.transpose_b ? s.k : s.n, C(0), product.data(), s.n);
    T* const c = static_cast<T*>(call.c) + batch * s.c_batch;
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        C sum = product[static_cast<size_t>(i * s.n + j)];
        if (s.accumulate) sum += static_cast<C>(c[i * s.c_row + j]);
        if (bias) sum += static_cast<C>(bias[j]);
        if (call.pre) static_cast<T*>(call.pre)[i * s.c_row + j] = static_cast<T>(sum);
        if (s.activation) sum = activated(*s.activation, sum);
        c[i * s.c_row + j] = static_cast<T>(sum);
      }
    }
  }
}

class StandIn final : public GemmPlan {
 public:
  explicit StandIn(const GemmProblem& problem) : problem_(problem) {
    of_this_thread<test::LibraryHandle>(brigade::cuda::current_device());
    const GemmShape& s = problem.shape;
    require(s.m > 0 && s.n > 0 && s.k > 0 && s.batches > 0, "empty problem " + describe(s, false));
    require(s.batches < 65536, "too many batches");
    require(s.a_row >= (s.transpose_a ? s.m : s.k) && s.b_row >= (s.transpose_b ? s.k : s.n) && s.c_row >= s.n,
            "rows overlap");
    if (s.activation) require(s.dtype != kFloat64 && s.batches == 1, "no activation for " + describe(s, false));
    if (problem.pre_alignment > 0) {
      require(s.activation == FusedActivation::GeluTanh, "only GELU keeps what it is taken of");
      require(s.c_row % kPreRowMultiple == 0, "what GELU keeps has rows of " + std::to_string(s.c_row));
    }
  }

  // Pretends that only algorithms with 4-byte loads have epilogues, and that none for a single column adds a bias, so
  // that tests cover both answers.
  bool possible() const noexcept override {
    const GemmShape& s = problem_.shape;
    const bool adds_bias = problem_.bias_alignment > 0;
    if (!adds_bias && !s.activation) return true;
    if (adds_bias && s.n == 1) return false;
    const int64_t rows = (s.a_row | s.b_row) * static_cast<int64_t>(itemsize(s.dtype));
    return rows % 4 == 0 && std::min(problem_.a_alignment, problem_.b_alignment) >= 4;
  }

  // Sums over a long k are split.
  size_t workspace_bytes() const noexcept override {
    return problem_.shape.k >= 64 ? static_cast<size_t>(problem_.shape.m * problem_.shape.n) * 4 : 0;
  }

  void run(const GemmCall& call, void* workspace, cudaStream_t stream) override {
    const auto size = static_cast<int64_t>(itemsize(call.shape.dtype));
    const GemmShape& s = call.shape;
    require(s == problem_.shape && (call.bias != nullptr) == (problem_.bias_alignment > 0) &&
                (call.pre != nullptr) == (problem_.pre_alignment > 0),
            "a plan of another problem");
    require(possible(), "a plan that is not possible");
    for (const int64_t batch : {int64_t{0}, s.batches - 1}) {
      require_on_device(static_cast<const char*>(call.a) + batch * s.a_batch * size, problem_.a_alignment, "a");
      require_on_device(static_cast<const char*>(call.b) + batch * s.b_batch * size, problem_.b_alignment, "b");
      require_on_device(static_cast<const char*>(call.c) + batch * s.c_batch * size, problem_.c_alignment, "c");
    }
    if (call.bias) require_on_device(call.bias, std::max<size_t>(problem_.bias_alignment, kBiasAlignment), "bias");
    if (call.pre) require_on_device(call.pre, std::max<size_t>(problem_.pre_alignment, kPreAlignment), "pre");
    if (workspace_bytes() > 0) require_on_device(workspace, 256, "workspace");
    test::queue(stream, workspace, workspace_bytes(),
                [call] { visit_floating(call.shape.dtype, "gemm", [&]<class T>() { compute<T>(call); }); });
  }

 private:
  GemmProblem problem_;
};

}  // namespace

std::unique_ptr<GemmPlan> plan_gemm(const GemmProblem& problem) { return std::make_unique<StandIn>(problem); }

}  // namespace brigade::kernels::cuda
