// Combines several works into one.
#pragma once

#include <brigade/dist/groups/work.h>

#include <vector>

namespace brigade::dist {

// Complete when all works are. wait() waits for each in order and throws the first error; a timeout covers all of them
// together. times() are those of the last work; the device span runs from the first start to the last end. Without
// works it is complete.
WorkPtr combined_work(std::vector<WorkPtr> works);

}  // namespace brigade::dist
