// Several works as one.
#pragma once

#include <brigade/dist/groups/work.h>

#include <vector>

namespace brigade::dist {

// Complete when all are. wait() waits for each in its order and throws what the first of them throws; a timeout is for all
// together. Its times are those of the last, on a device from the first beginning to the last end. Of no works: complete.
WorkPtr combined_work(std::vector<WorkPtr> works);

}  // namespace brigade::dist
