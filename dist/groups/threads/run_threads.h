// Runs ranks as threads of this process, and waits for them.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <functional>

namespace brigade::dist {

// Runs `body` on `ranks` threads, each with its group and with its rank as seed; waits for all. Rethrows the error of
// the rank that failed first; a failing rank aborts its group with the text of its error, so that no rank waits
// forever.
//
// If a rank still runs `exit_timeout` after the last of the other ranks has ended, the process ends (std::terminate,
// with a TimeoutError that names the rank): a thread cannot be killed, and the caller's objects that it uses must stay
// alive. 0: no limit. exit(0) by any thread before all ranks have ended ends the process with status 1.
void run_threads(int ranks, const std::function<void(ProcessGroupPtr)>& body,
                 std::chrono::milliseconds timeout = std::chrono::seconds(30),
                 std::chrono::milliseconds exit_timeout = std::chrono::minutes(30));

}  // namespace brigade::dist
