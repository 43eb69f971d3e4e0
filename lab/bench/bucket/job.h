// The rank jobs of `brigade bench bucket`.
#pragma once

namespace brigade::lab::bench {

// Rank jobs.
//
// The terms of buckets. Arguments: {"backends", "groups": [[case, ...], ...], "limits", "pin"}; a
// case is {"bytes", "parameters", "dtype", "hook", "gradients"}; the cases of one group are measured
// in turns, on each backend. Result: a row for each case and backend, {"backend", the case,
// "payload_bytes", "rounds", "noise"}, and lists of this rank's microseconds with an entry for each
// round: "flatten", "numbers", "flags", "launch", "reduce", "copy_out", "sum" (of these),
// "together", "reduce_in_backward" (empty where it is not known), "rest_in_backward".
inline constexpr const char* kBucketTermsJob = "bench-bucket";

// The same gradients cut into buckets of several sizes, over a simulated link, during a backward of given duration.
// Arguments: {"backends": [one], "caps": [bytes], "bytes", "parameters", "dtype", "compute_ms", "link", "limits"}.
// Result: a row for each cap, {"cap", "bucket_bytes": [one for each bucket], "rounds", "noise"}, and lists of
// milliseconds: "backward_ms", "on_the_way_ms", "hidden_ms".
inline constexpr const char* kBucketOverlapJob = "bench-bucket-overlap";

}  // namespace brigade::lab::bench
