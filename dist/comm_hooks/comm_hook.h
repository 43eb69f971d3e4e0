// Communication hooks: replace the plain all-reduce that averages the gradients of a bucket.
//
//   ddp.register_comm_hook(dist::fp16_compress_hook());
//   ddp.register_comm_hook(std::make_shared<MyHook>());
//
// With a hook the reducer does not divide: the hook must leave the mean over ranks in the bucket. The flags of unused
// parameters travel in a separate small all-reduce.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace brigade::dist {

// A hook's view of a bucket (PyTorch: dist.GradBucket).
class GradBucket {
 public:
  // Without `parameter_indices` the parameters are numbered from 0.
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
  // All gradients, 1-d, slots padded with zeros to 64-byte boundaries. Input: this rank's gradients; output: the mean
  // over ranks.
  const Tensor& buffer() const noexcept { return buffer_; }
  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  // Views of the buffer, in the shape of the parameters.
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }
  // The index of each parameter among those that the wrapper reduces. A rebuild moves parameters to other buckets,
  // and a resumed program starts with the initial buckets, so hooks key their state by this index.
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
  // Starts the communication of one bucket; must post its collectives in the same order on every rank. When the Work
  // has been waited for, bucket.buffer() must hold the result. If run() throws, the group is aborted: the peers get
  // the reason, and the group becomes unusable.
  virtual WorkPtr run(ProcessGroup& group, const GradBucket& bucket, const CollectiveOptions& options,
                      SourceLocation where) = 0;
  // Called once per round, before its first bucket. Returning false keeps the round on this rank (local SGD): nothing
  // is sent.
  virtual bool begin_round(uint64_t round) {
    static_cast<void>(round);
    return true;
  }
  // Called when buckets were rebuilt: state kept per bucket no longer fits.
  virtual void on_rebuild() {}
  // The state that a checkpoint has to hold (error feedback, the count of backwards), as copies. Loaded into a new
  // hook with the same options before training continues, it gives the same results, bit for bit, as without the
  // interruption. It belongs to one rank: each saves its own. load_state_dict throws ValueError for entries that do
  // not fit, without changing anything.
  //   checkpoint.part("hook", [&] { return optim::OptimizerState{hook->name(), hook->state_dict(), {}}; },
  //                   [&](const optim::OptimizerState& state) { hook->load_state_dict(state.tensors); });
  virtual std::vector<std::pair<std::string, Tensor>> state_dict() const { return {}; }
  virtual void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);
  // Whether a result may legitimately be far from the mean of this round's gradients (lost parts follow later, or
  // nothing is sent), or differ between ranks. Then neither its scale nor its equality on all ranks is checked. (For
  // a hook that posts no collective, equality is never checked.)
  virtual bool is_approximate() const { return false; }
};
using CommHookPtr = std::shared_ptr<CommHook>;

// The default all-reduce as a hook.
CommHookPtr allreduce_hook();
// Sends half the bytes: casts to float16 (bfloat16), averages, casts back. float16 overflows above 65504: DDP then
// names the bucket.
CommHookPtr fp16_compress_hook();
CommHookPtr bf16_compress_hook();
// The same for any floating dtype, float32 for half gradients too (DDPOptions::reduce_dtype). Each gradient is
// divided by `predivide_factor` before the cast and multiplied by it afterwards, so that values beyond the range of
// float16 fit. Throws ValueError for a dtype that is not floating, for a factor that is not above 0, and for a factor
// other than 1 with a dtype other than float16.
CommHookPtr reduce_in_hook(DType dtype, double predivide_factor = 1);
// Leaves gradients as they are on each rank, to measure the cost of communication. A training that uses it gets a
// warning at its end, unless something averages the parameters.
CommHookPtr noop_hook();

struct PowerSGDOptions {
  int matrix_approximation_rank = 1;
  // This many backwards are first averaged by plain all-reduces, counted as in PyTorch; at least 2 with error
  // feedback or warm start.
  uint64_t start_powersgd_iter = 2;
  // A matrix n x m is compressed when (n + m) * rank * this < n * m.
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  uint64_t seed = 0;
};
// Low-rank compression with error feedback. Source: Vogels, Karimireddy, Jaggi: "PowerSGD: practical low-rank
// gradient compression for distributed optimization", NeurIPS 2019, algorithms 1 and 2. If the tensors of a loaded
// state do not fit the gradients, the first backward throws ValueError.
CommHookPtr powersgd_hook(const PowerSGDOptions& options = {});

// Averages the first `start_local_sgd_iter` reduced backwards globally; from then on gradients stay local, and a
// PeriodicModelAverager has to average the parameters. Source: Lin, Stich, Patel, Jaggi: "Don't use large
// mini-batches, use local SGD", ICLR 2020.
CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter);

// A user-defined hook: `start` begins the communication of a bucket.
CommHookPtr make_comm_hook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start);

// A Work that finishes `work` and then runs `after`, once, on the waiting thread.
WorkPtr then(WorkPtr work, std::function<void()> after);
// A Work that is already complete.
WorkPtr completed_work();

}  // namespace brigade::dist
