// Targets of the losses against class indices: which are valid, and the last step of a reduced loss.
#pragma once

#include <brigade/kernels/common/loss.h>
#include <brigade/kernels/cuda/detail/index_check.h>
#include <brigade/kernels/cuda/detail/loss_sums.h>

namespace brigade::kernels::cuda {

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
