// Communication hooks: how the gradients of one bucket are averaged, when a plain all-reduce is not
// wanted.
//
//   ddp.register_comm_hook(dist::fp16_compress_hook());
//   ddp.register_comm_hook(std::make_shared<MyHook>());
//
// With a hook the reducer no longer divides: the hook leaves the mean over ranks in the bucket. The
// flags of unused parameters travel in a small all-reduce of their own.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// What a hook sees of a bucket (PyTorch: dist.GradBucket).
class GradBucket {
 public:
  // Without `parameter_indices` the parameters count from 0.
  GradBucket(size_t index, bool is_last, Tensor buffer, std::vector<Tensor> parameters, std::vector<Tensor> gradients,
             std::vector<uint32_t> parameter_indices = {})
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        parameters_(std::move(parameters)),
        gradients_(std::move(gradients)),
        parameter_indices_(std::move(parameter_indices)) {
    while (parameter_indices_.size() < parameters_.size())
      parameter_indices_.push_back(static_cast<uint32_t>(parameter_indices_.size()));
  }
  size_t index() const noexcept { return index_; }
  bool is_last() const noexcept { return is_last_; }
  // All gradients, 1-d, slots padded with zeros to 64-byte boundaries. In: this rank's. Out: the
  // mean over ranks.
  const Tensor& buffer() const noexcept { return buffer_; }
  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  // Views of the buffer, in the shape of the parameters.
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }
  // The place of each parameter among those that the wrapper reduces. A rebuild moves a parameter
  // to another bucket, and a resumed program begins with the buckets of a fresh one: what a hook
  // keeps is kept by this number.
  const std::vector<uint32_t>& parameter_indices() const noexcept { return parameter_indices_; }

 private:
  size_t index_;
  bool is_last_;
  Tensor buffer_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;
  std::vector<uint32_t> parameter_indices_;
};

class CommHook {
 public:
  virtual ~CommHook() = default;
  // "fp16_compress"
  virtual std::string name() const = 0;
  // Starts the communication of one bucket; must post its collectives in the same order on every
  // rank. When the Work is waited for, bucket.buffer() must hold the result. When it throws, the
  // group is aborted: the peers learn why, and the group is of no use any more.
  virtual WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
                      SourceLocation where) = 0;
  // Called once a round, before its first bucket. False: the coming round stays on this rank (local
  // SGD); nothing is sent.
  virtual bool begin_round(uint64_t round) {
    static_cast<void>(round);
    return true;
  }
  // Buckets were rebuilt: what was kept per bucket no longer fits.
  virtual void on_rebuild() {}
  // What a checkpoint has to hold (error feedback, the count of backwards), as copies; and back,
  // into a new hook of the same options, before training goes on: bit for bit as without the break.
  // It belongs to one rank: each saves its own. load_state_dict throws ValueError for entries that
  // do not fit, having changed nothing.
  //   checkpoint.part("hook", [&] { return optim::OptimizerState{hook->name(), hook->state_dict(), {}}; },
  //                   [&](const optim::OptimizerState& state) { hook->load_state_dict(state.tensors); });
  virtual std::vector<std::pair<std::string, Tensor>> state_dict() const { return {}; }
  virtual void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);
  // Whether a result may rightly be far from the mean of this round's gradients (what was lost
  // comes later, or nothing is sent), or other ones on other ranks. Neither its scale is judged then,
  // nor whether all ranks hold the same (which is not asked of a hook that posts no collective).
  virtual bool is_approximate() const { return false; }
};
using CommHookPtr = std::shared_ptr<CommHook>;

// The default, as a hook.
CommHookPtr allreduce_hook();
// Sends half the bytes: casts to float16 (bfloat16), averages, casts back. float16 overflows above
// 65504: DDP names the bucket then.
CommHookPtr fp16_compress_hook();
CommHookPtr bf16_compress_hook();
// The same for any floating dtype, float32 for half gradients too (DDPOptions::reduce_dtype). Each
// gradient is divided by `predivide_factor` before it is cast and multiplied by it afterwards: what
// float16 could not hold then fits. Throws ValueError for a dtype that is not floating, and for a
// factor that is not above 0, or not 1 with another dtype than float16.
CommHookPtr reduce_in_hook(DType dtype, double predivide_factor = 1);
// Does nothing: gradients stay as they are on each rank. To measure what communication costs; a training that goes on
// so is told at its end, unless something averages the parameters.
CommHookPtr noop_hook();

struct PowerSGDOptions {
  int matrix_approximation_rank = 1;
  // So many backwards are averaged by plain all-reduces first, as PyTorch counts; at least 2 with
  // error feedback or warm start.
  uint64_t start_powersgd_iter = 2;
  // A matrix n x m is compressed when (n + m) * rank * this < n * m.
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  uint64_t seed = 0;
};
// Low-rank compression with error feedback. Source: Vogels, Karimireddy, Jaggi: "PowerSGD:
// practical low-rank gradient compression for distributed optimization", NeurIPS 2019, algorithms 1
// and 2. A loaded state whose tensors do not fit the gradients is a ValueError in the first
// backward.
CommHookPtr powersgd_hook(const PowerSGDOptions& options = {});

// The first `start_local_sgd_iter` reduced backwards are averaged globally; from then on gradients
// stay local, and a PeriodicModelAverager is to average the parameters. Source: Lin, Stich, Patel,
// Jaggi: "Don't use large mini-batches, use local SGD", ICLR 2020.
CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter);

// A user's own: `start` begins the communication of a bucket.
CommHookPtr make_comm_hook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start);

// A Work that finishes another and then runs `after`, once, on the waiting thread.
WorkPtr then(WorkPtr work, std::function<void()> after);
// A Work that is complete.
WorkPtr completed_work();

}  // namespace brigade::dist
