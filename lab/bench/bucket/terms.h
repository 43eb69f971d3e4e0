// The cost of one bucket, term by term: each term alone, through the reducer's own parts, and all together in a DDP
// backward.
#pragma once

#include <brigade/dist/ddp/distributed_data_parallel.h>
#include <brigade/dist/diagnosis/advice.h>
#include <brigade/dist/reducer/buckets.h>
#include <brigade/lab/bench/bucket/given_gradients.h>

#include <optional>
#include <string>
#include <vector>

namespace brigade::lab::bench {

// How gradients get into their bucket and back.
enum class Placing : uint8_t {
  Views,   // written there by the nodes of backward: no copy
  Handed,  // gradient_as_bucket_view, and nodes hand over memory of their own: one copy in
  Copies,  // gradient_as_bucket_view off: a copy in and a copy out
};
// "views", "handed", "copies". find_placing throws ValueError that lists them.
const char* name(Placing placing) noexcept;
Placing find_placing(const std::string& text);

// "none", "allreduce", "fp16_compress", "bf16_compress", "powersgd", "noop"; null for none. Throws
// ValueError that lists them.
dist::CommHookPtr make_hook(const std::string& text);

struct BucketCase {
  int64_t bytes = 0;
  int64_t parameters = 1;
  DType dtype = DType::Float32;
  std::string hook = "none";
  Placing placing = Placing::Views;
};

// Microseconds of one bucket on this rank.
struct BucketTerms {
  double flatten = 0;   // gradients into their slots
  double numbers = 0;   // the sums of squares that the diagnosis sends along
  double flags = 0;     // flags and words: written before the reduction, read after it
  double launch = 0;    // the call that posts the all-reduce, or that of the hook
  double reduce = 0;    // from the last rank's post (this rank's, when that is unknown) until the result is here
  double copy_out = 0;  // slots into gradients

  double sum() const noexcept { return flatten + numbers + flags + launch + reduce + copy_out; }
};

// One case on one rank, constructed once and measured many times. Every call is collective.
class MeasuredBucket {
 public:
  MeasuredBucket(const BucketCase& what, dist::ProcessGroupPtr group);

  // Measures each term alone. A term is 0 where the placing copies nothing.
  BucketTerms alone();
  // The time that DDP adds to a backward that only writes the gradients: the backward with DDP minus the backward
  // without, run in turn. Microseconds.
  double together();
  // From the reducer's timeline in the latest together(): the time from the last rank's launch to the sums (NaN
  // when the group cannot report it), and from there to the end of backward.
  double reduce_in_backward() const noexcept { return reduce_in_backward_; }
  double rest_in_backward() const noexcept { return rest_in_backward_; }
  // Bytes of the payload: gradients, padding, flags and words.
  int64_t payload_bytes() const;

 private:
  void reduce(BucketTerms& terms);
  double backward_us(nn::Module& module, const std::function<Tensor()>& forward);

  BucketCase case_;
  dist::ProcessGroupPtr group_;
  GivenGradients plain_;    // without DDP; alone() uses its parameters
  GivenGradients wrapped_;  // wrapped by ddp_
  dist::DistributedDataParallel<GivenGradients> ddp_;
  std::vector<dist::NamedAdvice> advice_;  // whose statistics travel with the bucket
  dist::ReducerSetup setup_;
  std::optional<dist::Buckets> buckets_;
  std::vector<Tensor> own_;  // gradients with memory of their own
  double reduce_in_backward_ = 0;
  double rest_in_backward_ = 0;
};

// --- The rank jobs of `brigade bench bucket`.

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
