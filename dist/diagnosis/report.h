// Turns what each rank saw into the one error that all ranks raise.
#pragma once

#include <brigade/dist/diagnosis/cause.h>
#include <brigade/dist/errors/verdict.h>
#include <brigade/dist/reducer/past.h>

#include <map>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

// One rank's view of a failed backward.
struct RankReport {
  int rank = 0;
  uint64_t round = 0;                // its number of reduced backwards
  Place backward;                    // of the call
  std::string failure;               // text of the exception that ended its backward, "" when it ran through
  std::vector<bool> ready;           // per parameter
  std::vector<bool> reached;         // per parameter: ready in an earlier backward of a set that may jointly reach all
  std::vector<bool> elsewhere;       // per parameter: another wrapper averages its gradient
  std::vector<bool> recorded;        // static_graph: what its first backward used; else empty
  Place recorded_at;                 // of that backward
  bool keeps_graph = false;          // another backward may follow on the same graph
  bool shares_optimizer = false;     // one optimizer holds a parameter that was ready and one that was not
  std::map<uint32_t, Cause> causes;  // of the parameters that were not ready
  std::map<uint32_t, Place> called;  // of ready ones that a peer misses: where their module was called
};

// The kind of the error, and what the reports do not contain.
struct ErrorContext {
  bool find_unused_parameters = false;
  bool by_fabric = false;         // a Fabric has made the wrapper
  bool failed = false;            // some rank's backward threw
  bool same_round = true;         // all ranks were in the same backward, and averaged the same gradients in it
  bool changed = false;           // static_graph: some rank used another set
  std::vector<uint8_t> expected;  // per parameter
  SourceLocation where;
  std::string wrapper;  // "DDP(Net)"
  std::string legend;   // which global ranks those of a subgroup are (RankNames::legend)
};

// The kinds of verdict on a failed backward, each in a file of its own under kinds/. `reports`: one
// per rank, in rank order.
Verdict rank_failed(std::span<const RankReport> reports);
Verdict backward_mismatch(std::span<const RankReport> reports, std::span<const NamedParameter> parameters);
// Returns one verdict per parameter.
std::vector<Verdict> static_graph_changed(std::span<const RankReport> reports,
                                          std::span<const NamedParameter> parameters, SourceLocation where);
// Returns one verdict for each group of parameters that are missing on the same ranks for the same cause.
std::vector<Verdict> unused_parameters(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                                       const ErrorContext& context);

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             const ErrorContext& context);

// --- Merges the verdicts of all ranks into one list.

// Merges the verdicts of all ranks (element r: those of rank r) into one list: equal verdicts
// become one, with their ranks joined. The result is the same on every rank.
std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank);

// --- The fields of a verdict that follow from the backward that it is about.

// A verdict at the line of that backward, without a message yet.
Verdict verdict_at(const Moment& moment, const char* kind, Severity severity, CauseKind cause);

}  // namespace brigade::dist
