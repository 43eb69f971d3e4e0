// Ranks that are threads of this process, started and waited for.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <functional>

namespace brigade::dist {

// Runs `body` on `ranks` threads, each with its group and with its rank as seed; waits for all.
// Rethrows the error of the lowest rank that failed first; the others' groups are aborted with its
// text, so that nobody waits for ever.
//
// A rank that runs on for `exit_timeout` after the last of the others has ended ends the process
// (std::terminate, with a TimeoutError that names it): a thread cannot be ended, and what it uses
// of the caller must not go. 0: never. exit(0) by any thread before all ranks have ended ends the process
// with status 1.
void run_threads(int ranks, const std::function<void(ProcessGroupPtr)>& body,
                 std::chrono::milliseconds timeout = std::chrono::seconds(30),
                 std::chrono::milliseconds exit_timeout = std::chrono::minutes(30));

}  // namespace brigade::dist
