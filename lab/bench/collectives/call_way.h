// One way to call a collective (backend, kind of memory, in place or not, number of calls in flight), and its time.
#pragma once

#include <brigade/lab/bench/collectives/collective.h>
#include <brigade/lab/bench/collectives/computation.h>
#include <brigade/lab/bench/collectives/plain_loops.h>

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <vector>

namespace brigade::lab::bench {

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
