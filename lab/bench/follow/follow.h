// Cases on ranks that another program names, one after another: `brigade bench follow`. So
// bench/beside_torch.py can take turns with PyTorch within one run.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <functional>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// Microseconds of a case on this rank, one for each sample. Runs on every rank with the same words
// of a line. Throws ValueError for words that name no case, before any collective.
using CaseSamples = std::function<std::vector<double>(const std::vector<std::string>& words)>;

// Reads lines from standard input on rank 0 until it ends, gives each to all ranks, and answers on
// standard output with {"case": the line, "us": [for each sample, that of the slowest rank]}.
// Collective.
void follow(dist::ProcessGroup& group, const CaseSamples& samples_of);

// Reads lines of "OPERATION LENGTH" from standard input until it ends, and answers with {"case": the
// line, "error": the largest relative error of the operation in float32, beside float64}. Throws
// ValueError for a line that names no case.
void follow_accuracy();

// A whole number above 0 of at most `most`; throws ValueError that names `what` otherwise.
int64_t count_of(const std::string& word, const char* what, int64_t most);

// The jobs of ranks (lab/rank_job.h). Lines of "MODEL MODE STEPS": so many steps after one that is
// not counted; networks and wrappers are made when they are first named, and kept. The argument is the
// device: on a GPU the answer is one time, the mean of steps of which none waits for the device but the
// last. Lines of "DTYPE
// BYTES WAY CALLS", where WAY is in_place (memory of the group) or staged (any memory): so many
// all-reduces (sum), each of a buffer that its rank has just written.
inline constexpr const char* kFollowDdpJob = "bench-follow-ddp";
inline constexpr const char* kFollowAllreduceJob = "bench-follow-allreduce";

}  // namespace brigade::lab::bench
