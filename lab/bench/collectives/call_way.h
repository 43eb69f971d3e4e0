// Ways to call a collective, and what they are compared with.
#pragma once

#include <brigade/dist/groups/process_group.h>
#include <brigade/lab/bench/collectives/collective.h>

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace brigade::dist::shm {
class SharedGroup;
}

namespace brigade::lab::bench {

// --- A computation of chosen length that needs almost no memory. It stands for the work of a program while its
// collectives are in flight.

class Computation {
 public:
  // Measures how long a step takes on this processor: a few milliseconds.
  Computation();
  // The number of steps that take about `us` microseconds.
  int64_t steps_in(double us) const;
  void run(int64_t steps) const;

 private:
  double steps_per_us_ = 1;
};

// --- The minimal all_reduce in shared memory, without a process group's headers, rings and pieces: the limit that
// `brigade bench allreduce --plain-loops` reports.

// An in-place all_reduce of one tensor: barrier, reduce this rank's share over the memory of all ranks, barrier.
// Data that the peers cannot reach is copied in before and out after, as a whole.
class PlainLoops {
 public:
  // Whether the ranks of a group share memory.
  static bool fit(const dist::ProcessGroup& group);

  // Collective. `group` must pass fit(); `data` is contiguous, on the CPU, and of equal size on all ranks.
  PlainLoops(dist::ProcessGroup& group, const Tensor& data);
  // Collective.
  void run(dist::ReduceOp op) const;

 private:
  dist::shm::SharedGroup* group_;
  Tensor data_;
  Tensor reached_;             // reachable by the peers: the data, or its copy
  std::vector<void*> places_;  // of all ranks' `reached_`
};

// --- One way to call a collective (backend, kind of memory, in place or not, number of calls in flight), and its time.

struct CallWay {
  const Collective* collective = nullptr;
  dist::ProcessGroup* group = nullptr;
  std::string backend;
  std::string memory;  // "group": allocated by the group, which saves copies; "plain"
  DType dtype = kFloat32;
  dist::ReduceOp op = dist::ReduceOp::Sum;
  int64_t bytes = 0, count = 0;
  int repetitions = 0;                 // calls of each buffer per time(); 0: as many as keep a round short
  std::vector<Buffers> calls = {};     // one for each call in flight
  std::vector<PlainLoops> loops = {};  // replace the calls, one for each, unless empty
  int64_t wrong = 0;                   // elements so far
  std::vector<double> compute_us = {}, comm_us = {};  // from overlap()

  // Replaces the calls with plain loops from now on. Collective.
  void use_plain_loops();
  // Posts all calls, then waits for all of them.
  void run() const;
  // Fills the inputs, runs, and counts the wrong elements of the outputs. Leaves zeros, which stay zeros under
  // repeated reduction.
  void check();
  // Microseconds per call, from repeated calls as in OSU and nccl-tests. This is the median of the repetitions, so
  // that one scheduler stall (milliseconds) does not distort it.
  double time() const;
  // OSU's overlap: times the calls alone, a computation of equal length alone, and both together (post the calls,
  // compute, wait). Returns the time of both together.
  double overlap(const Computation& computation, int progress);

  nlohmann::json key() const;

 private:
  int count_of_samples() const;
  void post(std::vector<dist::WorkPtr>& works) const;
};

}  // namespace brigade::lab::bench
