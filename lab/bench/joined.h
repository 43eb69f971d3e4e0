// A benchmark whose ranks a launcher has started, on one host or on several: `brigade run`, torchrun, mpirun, srun.
//
// Every rank runs the same command and takes part in the same jobs. All of them get what all have answered, so that each
// takes the same decisions; rank 0 prints, and writes the files.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <string>
#include <vector>

namespace brigade::lab::bench {

// The ranks of the launcher's job; 0 where no launcher has started this process, or it alone.
int joined_ranks();
// Whether all of them are on this host, as far as the launcher tells; without one they are.
bool are_on_one_host();
// Whether this process is rank 0 of the launcher's job, or the only one of its command.
bool is_speaker();
// The group of these ranks over a backend, made at the first call and kept: collective. "auto" is the fastest between them.
// Throws what init_process_group throws, and ValueError for the backend threads.
dist::ProcessGroupPtr joined_group(const std::string& backend);
// What a job answers on each rank, by rank: runs it here, and exchanges the answers. Throws the error of the job, in
// words that name this rank.
std::vector<std::string> run_joined(const std::string& job, const std::string& arguments,
                                    const dist::ProcessGroupPtr& group);
// Whether joined_group() has been called: this process measures as one of the launcher's ranks.
bool has_joined();
// The end of the program: what is kept goes while all that it uses is there.
void leave_joined_groups();

}  // namespace brigade::lab::bench
