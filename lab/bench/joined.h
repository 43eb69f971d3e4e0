// Benchmarks whose ranks a launcher has started on one or several hosts: `brigade run`, torchrun, mpirun, srun.
//
// Every rank runs the same command and takes part in the same jobs. Every rank gets the answers of all ranks, so
// that all take the same decisions; rank 0 prints and writes the files.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>
#include <vector>

namespace brigade::lab::bench {

// The number of ranks of the launcher's job; 0 without a launcher, or when it has started only this process.
int joined_ranks();
// Whether all ranks are on this host, as far as the launcher says; true without a launcher.
bool are_on_one_host();
// Whether this process is rank 0 of the launcher's job, or the only one of its command.
bool is_speaker();
// The group of these ranks over a backend, made at the first call and kept. Collective. "auto" is the fastest
// backend between these ranks. Throws what init_process_group throws, and ValueError for the backend threads.
dist::ProcessGroupPtr joined_group(const std::string& backend);
// Runs the job here and returns the answers of all ranks, by rank. Throws the job's error, with a message that
// names this rank.
std::vector<std::string> run_joined(const std::string& job, const std::string& arguments,
                                    const dist::ProcessGroupPtr& group);
// Whether joined_group() has been called, that is, this process measures as one of the launcher's ranks.
bool has_joined();
// Destroys the kept groups. Call it at the end of main, while everything that they use still exists.
void leave_joined_groups();

}  // namespace brigade::lab::bench
