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
  GradBucket(size_t index, bool is_last, Tensor buffer, std::vector<Tensor> parameters, std::vector<Tensor> gradients)
      : index_(index),
        is_last_(is_last),
        buffer_(std::move(buffer)),
        parameters_(std::move(parameters)),
        gradients_(std::move(gradients)) {}
  size_t index() const noexcept { return index_; }
  bool is_last() const noexcept { return is_last_; }
  // All gradients, 1-d, slots padded with zeros to 64-byte boundaries. In: this rank's. Out: the
  // mean over ranks.
  const Tensor& buffer() const noexcept { return buffer_; }
  const std::vector<Tensor>& parameters() const noexcept { return parameters_; }
  // Views of the buffer, in the shape of the parameters.
  const std::vector<Tensor>& gradients() const noexcept { return gradients_; }

 private:
  size_t index_;
  bool is_last_;
  Tensor buffer_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> gradients_;
};

class CommHook {
 public:
  virtual ~CommHook() = default;
  // "fp16_compress"
  virtual std::string name() const = 0;
  // Starts the communication of one bucket; must post its collectives in the same order on every
  // rank. When the Work is waited for, bucket.buffer() must hold the result. May throw.
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
  // What a checkpoint has to hold (error feedback and so on), per rank; and back. Throws ValueError
  // when it does not fit.
  virtual std::vector<std::pair<std::string, Tensor>> state_dict() const { return {}; }
  virtual void load_state_dict(const std::vector<std::pair<std::string, Tensor>>& state);
};
using CommHookPtr = std::shared_ptr<CommHook>;

// The default, as a hook.
CommHookPtr allreduce_hook();
// Sends half the bytes: casts to float16 (bfloat16), averages, casts back. float16 overflows above
// 65504: DDP names the bucket then.
CommHookPtr fp16_compress_hook();
CommHookPtr bf16_compress_hook();
// Does nothing: gradients stay as they are on each rank. To measure what communication costs.
CommHookPtr noop_hook();

struct PowerSGDOptions {
  int matrix_approximation_rank = 1;
  // Plain all-reduces before this reduced backward (from 1); at least 2, since buckets are rebuilt
  // after the first.
  uint64_t start_powersgd_iter = 2;
  // A matrix n x m is compressed when (n + m) * rank * this < n * m.
  double min_compression_rate = 2;
  bool use_error_feedback = true;
  bool warm_start = true;
  uint64_t seed = 0;
};
// Low-rank compression with error feedback. Source: Vogels, Karimireddy, Jaggi: "PowerSGD:
// practical low-rank gradient compression for distributed optimization", NeurIPS 2019, algorithms 1
// and 2.
CommHookPtr powersgd_hook(const PowerSGDOptions& options = {});

// Global averaging until reduced backward `start_local_sgd_iter`; from then on gradients stay
// local, and a PeriodicModelAverager is to average the parameters. Source: Lin, Stich, Patel,
// Jaggi: "Don't use large mini-batches, use local SGD", ICLR 2020.
CommHookPtr post_local_sgd_hook(uint64_t start_local_sgd_iter);

// A user's own: `start` begins the communication of a bucket.
CommHookPtr make_comm_hook(std::string name, std::function<WorkPtr(ProcessGroup&, const GradBucket&)> start);

// A Work that finishes another and then runs `after`, once, on the waiting thread.
WorkPtr then(WorkPtr work, std::function<void()> after);
// A Work that is complete.
WorkPtr completed_work();

}  // namespace brigade::dist
