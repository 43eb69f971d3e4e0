// The CUDA column of optimizer.h: a block per piece of a parameter (detail/multi_tensor.h), 16 bytes of each of its
// tensors per thread and turn.
#include <brigade/kernels/optimizer.h>

#include <brigade/kernels/cuda/detail/multi_tensor.h>
#include <brigade/kernels/detail/foreach_checks.h>
#include <brigade/kernels/detail/optimizer_math.h>

#include <initializer_list>
#include <vector>

namespace brigade::kernels {

namespace {

// What happens to element k of each array of a row: the parameter, its gradient (which is only read), its state.
template <class C, bool has_buffer>
struct SgdUpdate {
  static constexpr int kArrays = has_buffer ? 3 : 2;
  SgdStep<C> step;
  __device__ void operator()(C (&v)[kArrays]) const {
    if constexpr (has_buffer) {
      v[0] = step(v[0], v[1], v[2]);
    } else {
      v[0] = step(v[0], v[1]);
    }
  }
};
template <class C, bool amsgrad>
struct AdamUpdate {
  static constexpr int kArrays = amsgrad ? 5 : 4;
  AdamStep<C> step;
  __device__ void operator()(C (&v)[kArrays]) const {
    C none = C(0);
    C* highest = &none;
    if constexpr (amsgrad) highest = &v[4];
    v[0] = step.template next<amsgrad>(v[0], v[1], v[2], v[3], *highest);
  }
};

template <class T, class Update>
__global__ void __launch_bounds__(cuda::kMultiThreads)
    update_kernel(cuda::MultiTable<Update::kArrays> table, Update update) {
  using C = compute_type<T>;
  constexpr int kArrays = Update::kArrays;
  constexpr int kLength = cuda::kVectorBytes / static_cast<int>(sizeof(T));
  const cuda::Piece piece = table.piece();
  T* row[kArrays];
  bool vectors = true;
#pragma unroll
  for (int a = 0; a < kArrays; ++a) {
    row[a] = table.template at<T>(a, piece.row);
    vectors = vectors && cuda::is_aligned(row[a], kLength);
  }
  // One turn at a time: the arrays are loads enough in flight.
  cuda::for_vectors<kLength, 1>(piece, [&](auto, int64_t at) {
    cuda::Vector<T, kLength> x[kArrays];
#pragma unroll
    for (int a = 0; a < kArrays; ++a)
      x[a] = cuda::load_padded<kLength>(row[a], at, piece.end, vectors);
#pragma unroll
    for (int k = 0; k < kLength; ++k) {
      C v[kArrays];
#pragma unroll
      for (int a = 0; a < kArrays; ++a)
        v[a] = static_cast<C>(x[a].values[k]);
      update(v);
#pragma unroll
      for (int a = 0; a < kArrays; ++a)
        x[a].values[k] = static_cast<T>(v[a]);
    }
#pragma unroll
    for (int a = 0; a < kArrays; ++a) {
      if (a != 1) cuda::store_padded<kLength>(row[a], at, piece.end, vectors, x[a]);
    }
  });
}

// `lists`: the parameters, then one list for each further array.
template <class T, class Update>
void launch_update(const char* name, std::initializer_list<std::span<const Tensor>> lists, const Update& update) {
  constexpr int kArrays = Update::kArrays;
  const std::span<const Tensor> params = *lists.begin();
  std::vector<cuda::MultiRow<kArrays>> rows(params.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i].numel = params[i].numel();
    for (size_t a = 0; a < kArrays; ++a)
      rows[i].data[a] = lists.begin()[a][i].raw_data();
  }
  cuda::for_tables<kArrays>(rows, [&](const cuda::MultiTable<kArrays>& table) {
    cuda::launch({name, static_cast<unsigned>(table.pieces), cuda::kMultiThreads}, params.front().device(),
                 &update_kernel<T, Update>, table, update);
  });
}

void foreach_sgd_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                           std::span<const Tensor> momentum_buffers, const SgdParams& s) {
  check_foreach_sgd(params, grads, momentum_buffers);
  visit_floating(params.front().dtype(), "sgd step", [&]<class T>() {
    using C = compute_type<T>;
    const SgdStep<C> step(s);
    if (momentum_buffers.empty()) {
      launch_update<T>("sgd_step", {params, grads}, SgdUpdate<C, false>{step});
    } else {
      launch_update<T>("sgd_step", {params, grads, momentum_buffers}, SgdUpdate<C, true>{step});
    }
  });
}

void foreach_adam_step_cuda(std::span<const Tensor> params, std::span<const Tensor> grads,
                            std::span<const Tensor> exp_avgs, std::span<const Tensor> exp_avg_sqs,
                            std::span<const Tensor> max_exp_avg_sqs, const AdamParams& a) {
  check_foreach_adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs);
  visit_floating(params.front().dtype(), "adam step", [&]<class T>() {
    using C = compute_type<T>;
    const AdamStep<C> step(a);
    if (max_exp_avg_sqs.empty()) {
      launch_update<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs}, AdamUpdate<C, false>{step});
    } else {
      launch_update<T>("adam_step", {params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs}, AdamUpdate<C, true>{step});
    }
  });
}

const AddKernel add_foreach_sgd_step(foreach_sgd_step, kCUDA, &foreach_sgd_step_cuda);
const AddKernel add_foreach_adam_step(foreach_adam_step, kCUDA, &foreach_adam_step_cuda);

}  // namespace

}  // namespace brigade::kernels
