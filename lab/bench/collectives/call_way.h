// One way to call a collective: on one backend, in one kind of memory, in place or not, several calls in
// flight; and its time.
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
  std::string memory;  // "group": allocated by it, so that it copies least; "plain"
  DType dtype = kFloat32;
  dist::ReduceOp op = dist::ReduceOp::Sum;
  int64_t bytes = 0, count = 0;
  int repetitions = 0;                 // calls of each buffer in a sample; 0: as many as keep its time short
  std::vector<Buffers> calls = {};     // as many as are in flight at once
  std::vector<PlainLoops> loops = {};  // in place of the calls, one for each; empty: the calls themselves
  int64_t wrong = 0;                   // elements, so far
  std::vector<double> compute_us = {}, comm_us = {};  // of overlap()

  // From now on plain loops do what the calls do. Collective.
  void use_plain_loops();
  // All calls, then all waits.
  void run() const;
  // Fills the inputs, runs, and counts the wrong elements of the outputs; leaves zeros, which stay
  // zeros however often they are reduced.
  void check();
  // Microseconds of one call, by OSU's and nccl-tests' way of calling again and again: the median of
  // repetitions, since a stall of the scheduler (milliseconds) in one of them must not stand for all.
  double time() const;
  // OSU's overlap: how long calls take alone, a computation that is as long alone, and both together
  // (calls posted, computation, waits), which is returned.
  double overlap(const Computation& computation, int progress);

  nlohmann::json key() const;

 private:
  int count_of_samples() const;
  void post(std::vector<dist::WorkPtr>& works) const;
};

}  // namespace brigade::lab::bench
