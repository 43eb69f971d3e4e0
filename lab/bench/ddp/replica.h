// One network that is trained in one mode: what `brigade bench ddp` takes in turns.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/lab/bench/averaged_once.h>
#include <brigade/lab/bench/ddp/workloads.h>
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
  bool unused_tenth = false;     // beside a tenth of parameters that no forward uses
  int micro_batches = 1;         // all but the last under no_sync
  DType dtype = DType::Float32;  // of parameters and batch
};

// "strict", "find_unused", ...: those that `brigade bench ddp --modes` knows, and "cap4" (bucket_cap_mb
// = 4, first_bucket_mb at most that) for any number. Throws ValueError that lists them.
Mode find_mode(const std::string& name);
// A line for each of them: name and meaning.
std::string modes_in_words();

// What one step cost this rank.
struct StepTimes {
  double step_ms = 0;  // whole: zero_grad, forward, loss, backward, SGD; of one micro-batch where there are several
  RoundShares shares;  // of the reduced backward; zeros without DDP
  size_t buckets = 0;
};

// The model and its wrapper are made when it is (collective). Parameters are the same on all ranks,
// batches are not.
class Replica {
 public:
  Replica(const Workload& workload, Mode mode, const dist::ProcessGroupPtr& group);
  Replica(const Replica&) = delete;
  Replica& operator=(const Replica&) = delete;

  // One step of SGD on the next of four batches.
  StepTimes step();

  const Mode& mode() const noexcept { return mode_; }
  Network& network() noexcept { return network_; }
  // Of the gradients.
  int64_t bytes() const;
  size_t tensors() const { return network_->parameters().size(); }
  // The wrapper; null without DDP.
  const dist::DistributedDataParallel<Network>* ddp() const { return ddp_ ? &*ddp_ : nullptr; }

 private:
  void backward_of(const Batch& batch);

  const Workload& workload_;
  Mode mode_;
  Network network_;
  std::vector<Batch> batches_;
  size_t next_ = 0;
  std::optional<dist::DistributedDataParallel<Network>> ddp_;
  std::unique_ptr<optim::SGD> optimizer_;
  std::optional<dist::PeriodicModelAverager> averager_;  // where gradients stay local
};

}  // namespace brigade::lab::bench
