// SyncBatchNorm: batch normalization with statistics over the batches of all ranks.
//
// Each rank computes count, mean and squared deviations of its own batch; these are gathered and combined (Chan,
// Golub, LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979), so that batches
// of different sizes, including empty ones, give the result of one process on the whole batch. Backward sums two
// values per channel over the ranks.
//
// Every rank must run this layer in each training forward and in its backward. If DistributedDataParallel uses
// find_unused_parameters on graphs that differ between ranks, give the statistics a group of their own: otherwise
// gradients and sums would be posted in different orders.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/nn/batch_norm.h>

namespace brigade::dist {

// Like batch_norm in training, over the batches of all ranks. x [N, C, ...], N may be 0. Collective in forward (one
// all_gather) and, when gradients flow to x, in backward (one all_reduce). On one rank it equals batch_norm, bit for
// bit. `name`: the layer's name in messages. Throws ShapeError; ValueError, on every rank, "Expected more than 1
// value per channel when training" when all ranks together hold fewer than two; backward throws AutogradError under
// create_graph: there is no second derivative.
Tensor sync_batch_norm(const ProcessGroupPtr& group, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, double momentum, double eps,
                       const std::string& name, SourceLocation where = SourceLocation::current());

// A layer for [N, C] and [N, C, ...]. Evaluation uses the running statistics, without communication.
struct SyncBatchNormImpl : nn::BatchNormImpl {
  SyncBatchNormImpl(int64_t num_features, const ProcessGroupPtr& group, const nn::BatchNormOptions& options = {});

 protected:
  void check_input(const Tensor& x, SourceLocation where) const override;
};
//   dist::SyncBatchNorm norm(64, group, {.momentum = 0.01});
BRIGADE_MODULE(SyncBatchNorm);

// Makes every BatchNorm1d and BatchNorm2d of the module tree synchronize in training, in place: modules, parameters
// and buffers keep their identity (PyTorch replaces the modules). A SyncBatchNorm switches to the group. Evaluation
// is not changed. Returns the number of layers. Throws ValueError for an empty group.
int convert_sync_batchnorm(nn::Module& module, const ProcessGroupPtr& group);
template <nn::Holder H>
int convert_sync_batchnorm(const H& module, const ProcessGroupPtr& group) {
  return convert_sync_batchnorm(*module.ptr(), group);
}

}  // namespace brigade::dist
