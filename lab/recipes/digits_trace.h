// A rank job for `brigade explain digits`: a few steps of the recipe's model on made-up images. Arguments: JSON with
// "bucket_mb". Result: the trace of the last steps (docs/trace.md).
#pragma once

namespace brigade::lab {

inline constexpr const char* kDigitsTraceJob = "explain-digits";

}  // namespace brigade::lab
