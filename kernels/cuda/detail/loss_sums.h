// The sum or mean of losses in an order that depends on their number alone: pieces first, then the sums of the pieces.
#pragma once

#include <brigade/core/factory.h>
#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/row_reduce.h>
#include <brigade/kernels/loss.h>

#include <algorithm>

namespace brigade::kernels::cuda {

inline constexpr int kSumThreads = 256;
inline constexpr int64_t kLossPiece = 8192;
inline constexpr int64_t kMostPieces = 4096;  // for the one block that adds them up

// The weight of a loss in a mean: the weight of its target's class, or 0 if the target is ignored or invalid.
template <class C>
struct CountedTargets {
  const int64_t* classes = nullptr;
  int64_t ignore_index = 0, count = 0;  // the number of classes
  const C* weight = nullptr;            // null: all 1

  __device__ double at(int64_t position) const {
    const int64_t wanted = classes[position];
    if (wanted == ignore_index || static_cast<uint64_t>(wanted) >= static_cast<uint64_t>(count)) return 0;
    return weight ? static_cast<double>(weight[wanted]) : 1;
  }
};

// The final step on the sum: multiplied by `scale`, or divided by the total weight of the losses, which is stored to
// `denominator`.
struct LossFinish {
  double scale = 1;
  bool divide = false;
  double* denominator = nullptr;
};

// Block b adds up losses [b * piece, (b + 1) * piece) and, for a division, their weights: from the targets, or from
// `counts` for the sums of pieces. A single block also does the final step.
template <class C, class T>
__global__ void __launch_bounds__(kSumThreads)
    loss_sum_kernel(int64_t count, int64_t piece, const C* losses, CountedTargets<C> targets, const double* counts,
                    LossFinish finish, C* piece_sums, double* piece_counts, T* loss) {
  BRIGADE_SHARED(C, partial, [kSumThreads / kWarp]);
  BRIGADE_SHARED(double, partial_counts, [kSumThreads / kWarp]);
  const int64_t end = ::min(count, (static_cast<int64_t>(blockIdx.x) + 1) * piece);
  C sum = C(0);
  double counted = 0;
  for (int64_t i = blockIdx.x * piece + threadIdx.x; i < end; i += kSumThreads) {
    sum += losses[i];
    if (finish.divide) counted += counts ? counts[i] : targets.at(i);
  }
  sum = block_reduce(sum, SumOf{}, &partial[0]);
  if (finish.divide) counted = block_reduce(counted, SumOf{}, &partial_counts[0]);
  if (threadIdx.x != 0) return;
  if (gridDim.x > 1) {
    piece_sums[blockIdx.x] = sum;
    if (finish.divide) piece_counts[blockIdx.x] = counted;
    return;
  }
  if (finish.divide) {
    *finish.denominator = counted;
    *loss = static_cast<T>(sum / static_cast<C>(counted));
  } else {
    *loss = static_cast<T>(sum * static_cast<C>(finish.scale));
  }
}

// The targets are only read for finish.divide.
template <class C, class T>
void sum_losses(Device device, int64_t count, const C* losses, const CountedTargets<C>& targets,
                const LossFinish& finish, T* loss) {
  const int64_t piece = std::max(kLossPiece, (count + kMostPieces - 1) / kMostPieces);
  const int64_t pieces = std::max<int64_t>(1, (count + piece - 1) / piece);
  if (pieces == 1) {
    launch({"loss_sum", 1, kSumThreads}, device, &loss_sum_kernel<C, T>, count, piece, losses, targets, nullptr, finish,
           nullptr, nullptr, loss);
    return;
  }
  const Tensor sums = empty({pieces}, {dtype_of<C>, device});
  const Tensor counts = empty({finish.divide ? pieces : 0}, {kFloat64, device});
  C* const piece_sums = static_cast<C*>(sums.raw_data());
  double* const piece_counts = static_cast<double*>(counts.raw_data());
  launch({"loss_sum", blocks_for(pieces, 1), kSumThreads}, device, &loss_sum_kernel<C, T>, count, piece, losses,
         targets, nullptr, finish, piece_sums, piece_counts, loss);
  launch({"loss_sum", 1, kSumThreads}, device, &loss_sum_kernel<C, T>, pieces, pieces, piece_sums, targets,
         piece_counts, finish, nullptr, nullptr, loss);
}

// --- Targets of the losses against class indices: which are valid, and the last step of a reduced loss.

struct Targets {
  const int64_t* classes;
  int64_t ignore_index;
  IndexCheck check;

  // The class at a position; -1 if it is ignored or invalid. Invalid classes are reported.
  __device__ int64_t at(int64_t position) const {
    const int64_t wanted = classes[position];
    return wanted != ignore_index && check(wanted, position) ? wanted : -1;
  }
};

// The sum or mean of the losses of all positions; `denominator` is filled where it is defined.
template <class C, class T>
void finish_class_losses(const ClassLossPlan& plan, const ClassLossOptions& options, const Tensor& losses,
                         const Tensor& denominator, const Tensor& loss) {
  const ClassShares<C> shares = class_shares<C>(plan, 0);
  LossFinish finish;
  finish.divide = options.reduction == Reduction::Mean;
  if (finish.divide) finish.denominator = static_cast<double*>(denominator.raw_data());
  sum_losses<C, T>(
      losses.device(), losses.numel(), static_cast<const C*>(losses.raw_data()),
      {static_cast<const int64_t*>(plan.target.raw_data()), options.ignore_index, shares.classes, shares.weight},
      finish, static_cast<T*>(loss.raw_data()));
}

}  // namespace brigade::kernels::cuda
