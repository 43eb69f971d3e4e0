// What a rank warns of by itself, told once for all.
#pragma once

#include <brigade/core/tensor.h>

namespace brigade::dist {

class Advisories;
class ProcessGroup;

// A collective: takes the warnings that this rank has not told, and those that this process holds
// (core/warning.h); rank 0 tells each with the ranks that have it, unless it has told it before.
void share_warnings(Advisories& advisories, ProcessGroup& group, SourceLocation where);

}  // namespace brigade::dist
