// Every kind of verdict (docs/verdicts.md), made from what was seen: each function has a file of its own under kinds/.
// They are pure: evidence in, words out.
#pragma once

#include <brigade/autograd/listener.h>
#include <brigade/dist/diagnosis/named_parameter.h>
#include <brigade/dist/diagnosis/outlier.h>
#include <brigade/dist/diagnosis/slow_rank.h>
#include <brigade/dist/diagnosis/verdict.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// The backward that a verdict is about: its number among the reduced ones, the line of its call, and the ranks of the
// group.
struct Moment {
  uint64_t iteration = 0;
  SourceLocation where;
  int ranks = 1;
};
// A verdict at the line of that backward, with nothing said yet.
Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause);

// --- At the end of a backward

// What a communication hook made of one bucket.
struct HookResult {
  std::string hook;    // its name
  std::string bucket;  // "bucket 0 of DDP(Net)"
  // kernels::probe() of the mean of the ranks' gradients, and of what the hook gave.
  double expected_probe = 0, found_probe = 0;
  double norm = 0;         // of the gradients, about
  bool was_finite = true;  // before the hook
  // Of the bucket; where the result is not finite, those that are not.
  std::vector<ParameterVerdict> parameters;
};
// Nothing where the hook may be right: lossy hooks may be far off, but not by exactly the number of ranks.
std::optional<Verdict> hook_result(const HookResult& found, const Moment& moment);

// What one rank saw of numbers that are not finite before the reduction.
struct NonFiniteOnRank {
  int rank = 0;
  Cause cause;
  std::vector<uint32_t> parameters;
};
Verdict non_finite_gradients(std::span<const NonFiniteOnRank> seen, std::span<const NamedParameter> parameters,
                             const Moment& moment);

// `backwards`: in a row in which the same rank stood out.
Verdict gradient_outlier(const Outlier& found, int backwards, std::span<const NamedParameter> parameters,
                         const Moment& moment);

// `rows`: of each rank's batch. Nothing where they are equal.
std::optional<Verdict> uneven_batches(std::span<const int64_t> rows, const Moment& moment);

Verdict slow_rank(const SlowRank& slow, std::span<const NamedParameter> parameters, const Moment& moment);

// `flag_bytes`: what the flags of all buckets cost.
Verdict nothing_unused(int64_t flag_bytes, size_t buckets, const Moment& moment);

// --- In backward

// `op` at `where` has changed a gradient that is still local.
Verdict edited_before_reduction(const std::string& op, SourceLocation where, int rank, const NamedParameter& parameter,
                                const Moment& moment);

}  // namespace brigade::dist
