// Ranks that are threads of this process, started and waited for.
#pragma once

#include <brigade/dist/groups/process_group.h>

#include <chrono>
#include <functional>

namespace brigade::dist {

// Runs `body` on `ranks` threads, each with its group and with its rank as seed; waits for all.
// Rethrows the error of the lowest rank that failed first; the others' groups are aborted with its
// text, so that nobody waits for ever.
void run_threads(int ranks, const std::function<void(ProcessGroupPtr)>& body,
                 std::chrono::milliseconds timeout = std::chrono::seconds(30));

}  // namespace brigade::dist
