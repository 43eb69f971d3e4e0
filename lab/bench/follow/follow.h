// Runs cases on ranks as another program names them, one after another: `brigade bench follow`. So
// bench/beside_torch.py can alternate with PyTorch within one run.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// The microseconds of a case on this rank, one value per sample. Called on every rank with the same words of a
// line. Throws ValueError for words that name no case, before any collective.
using CaseSamples = std::function<std::vector<double>(const std::vector<std::string>& words)>;

// Reads lines from standard input on rank 0 until it ends, sends each to all ranks, and prints {"case": the line,
// "us": [the slowest rank's time of each sample]} on standard output. Collective.
void follow(dist::ProcessGroup& group, const CaseSamples& samples_of);

// Reads lines of "OPERATION LENGTH" from standard input until it ends, and prints {"case": the line, "error": the
// largest relative error of the operation in float32, compared with float64}. Throws ValueError for a line that
// names no case.
void follow_accuracy();

// Parses a whole number from 1 to `most`. Throws ValueError that names `what` otherwise.
int64_t count_of(const std::string& word, const char* what, int64_t most);

// The rank jobs (lab/rank_job.h).
//
// The ddp job reads lines of "MODEL MODE STEPS": it runs STEPS steps after one that is not counted. Networks and
// wrappers are made when first named, and kept. The argument is the device. On a GPU the answer is one time: the
// mean of the steps, which synchronize with the device only after the last.
//
// The allreduce job reads lines of "DTYPE BYTES WAY CALLS", where WAY is in_place (memory of the group) or staged
// (any memory): it runs CALLS all-reduces (sum), each of a buffer that its rank has just written.
inline constexpr const char* kFollowDdpJob = "bench-follow-ddp";
inline constexpr const char* kFollowAllreduceJob = "bench-follow-allreduce";

}  // namespace brigade::lab::bench
