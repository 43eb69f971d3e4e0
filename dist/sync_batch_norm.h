// SyncBatchNorm: batch normalisation by the statistics of all ranks' batches together.
//
// Each rank computes count, mean and squared deviations of its own batch; these are gathered and combined (Chan, Golub,
// LeVeque: "Updating formulae and a pairwise algorithm for computing sample variances", 1979), so that batches of
// different sizes, empty ones included, give what one process gives on the whole batch. Backward adds up two sums per
// channel over the ranks.
#pragma once

#include <brigade/dist/process_group.h>
#include <brigade/nn/module.h>

namespace brigade::dist {

// As batch_norm in training, over the batches of all ranks. x [N, C, ...], N may be 0. Collective in forward (one
// all_gather) and, when gradients flow to x, in backward (one all_reduce); every rank's backward has to come through
// it. `name`: what it is called in messages. Throws ShapeError; ValueError "Expected more than 1 value per channel when
// training" when all ranks together hold less than two.
Tensor sync_batch_norm(ProcessGroup& group, const Tensor& x, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, double momentum, double eps,
                       const std::string& name, SourceLocation where = SourceLocation::current());

// Makes every BatchNorm1d and BatchNorm2d of the tree synchronise in training, in place: modules, parameters and
// buffers keep their identity (PyTorch replaces the modules). Evaluation is not changed. Returns how many there are.
int convert_sync_batchnorm(nn::Module& module, const ProcessGroupPtr& group);
template <nn::Holder H>
int convert_sync_batchnorm(const H& module, const ProcessGroupPtr& group) {
  return convert_sync_batchnorm(*module.ptr(), group);
}

}  // namespace brigade::dist
