// One network trained in one mode, as `brigade bench ddp` measures it.
#pragma once

#include <brigade/core/device_runtime.h>
#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/lab/bench/ddp/workloads.h>
#include <brigade/lab/bench/on_ranks.h>
#include <brigade/lab/bench/round_shares.h>
#include <brigade/optim/sgd.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// How a network is trained.
struct Mode {
  std::string name;
  std::string about;
  dist::DDPOptions options = {};
  dist::CommHookPtr (*hook)() = nullptr;
  bool stays_local = false;      // the hook lets gradients stay local
  bool wrapped = true;           // false: no DDP at all
  bool unused_tenth = false;     // adds a tenth of parameters that no forward uses
  int micro_batches = 1;         // all but the last under no_sync
  DType dtype = DType::Float32;  // of parameters and batch
  bool captured = false;         // the whole step is one CUDA graph
};

// The modes of `brigade bench ddp --modes` ("strict", "find_unused", ...), and "cap4" (bucket_cap_mb = 4,
// first_bucket_mb at most that) for any number. Throws ValueError that lists them.
Mode find_mode(const std::string& name);
// A line for each mode: name and meaning.
std::string modes_in_words();
// Throws ValueError when the device does not support the mode: a graph on the CPU.
void check_runs_on(const Mode& mode, DeviceType device);

// The times of one step on this rank.
struct StepTimes {
  // The whole step: zero_grad, forward, loss, backward, SGD, until the device is done; divided by the number of
  // micro-batches.
  double step_ms = 0;
  RoundShares shares;  // of the reduced backward; zeros without DDP, and in a graph
  size_t buckets = 0;
};

// The constructor makes the model and its wrapper (collective). Parameters are the same on all ranks, batches are
// not.
class Replica {
 public:
  // `device`: holds parameters and batches; must be the current device of this thread. Throws like check_runs_on().
  Replica(const Workload& workload, Mode mode, const dist::ProcessGroupPtr& group, Device device = {});
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // Takes one SGD step on the next of four batches.
  StepTimes step();
  // Mean milliseconds per step over `steps` steps, which synchronize with the device only after the last.
  double mean_ms_of(int64_t steps);

  const Mode& mode() const noexcept { return mode_; }
  Network& network() noexcept { return network_; }
  // The size of the gradients.
  int64_t bytes() const;
  size_t tensors() const { return network_->parameters().size(); }
  // The wrapper; null without DDP.
  const dist::DistributedDataParallel<Network>* ddp() const { return ddp_ ? &*ddp_ : nullptr; }

 private:
  // Trains on the next batches; on a device, only queues the work.
  void train();
  void train_captured();
  void wait_for_device() const;
  void backward_of(const Batch& batch);
  const Batch& next_batch() { return batches_[next_++ % batches_.size()]; }

  const Workload& workload_;
  Mode mode_;
  Device device_;
  Network network_;
  std::vector<Batch> batches_;
  size_t next_ = 0;
  std::optional<dist::DistributedDataParallel<Network>> ddp_;
  std::unique_ptr<optim::SGD> optimizer_;
  std::optional<dist::PeriodicModelAverager> averager_;  // if gradients stay local
  Batch fixed_;                                          // the graph's input
  std::unique_ptr<DeviceGraph> graph_;                   // last: it uses the memory of the members above
};

}  // namespace brigade::lab::bench
