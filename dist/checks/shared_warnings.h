// Merges the warnings of single ranks, so that each is printed once for all ranks.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::dist {

class Advisories;
class ProcessGroup;

// Takes this rank's undelivered warnings and those held by this process (core/warning.h). Rank 0 issues each with the
// ranks that have it, unless it has already issued that message. Collective.
void share_warnings(Advisories& advisories, ProcessGroup& group, SourceLocation where);

}  // namespace brigade::dist
