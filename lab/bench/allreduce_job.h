// What each rank does in `brigade bench allreduce`: all ways of reducing over all sizes, in turns.
#pragma once

#include <string>
#include <vector>

namespace brigade::lab {

// A rank job. Arguments: {"backends": [names, that of the group first], "sizes": [bytes], "rounds",
// "dtype", "op"}. Result: a row for each size and way, {"backend", "in_place", "bytes", "times":
// [microseconds, one per round], "wrong"}.
inline constexpr const char* kAllreduceJob = "bench-allreduce";

// Names that "op" may have.
std::vector<std::string> reduce_operations();

}  // namespace brigade::lab
