// From what each rank saw to the one error that all ranks raise.
#pragma once

#include <brigade/dist/diagnosis/cause.h>

#include <exception>
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
  std::vector<bool> reached;         // per parameter: ready in an earlier one of backwards that may reach all together
  std::vector<bool> recorded;        // static_graph: what its first backward used; else empty
  Place recorded_at;                 // of that backward
  std::map<uint32_t, Cause> causes;  // of the parameters that were not
};

// What kind of error it is, and what the reports do not say.
struct ErrorContext {
  bool find_unused_parameters = false;
  bool report_at_once = true;     // not in the next forward (ReducerOptions::ReportAt)
  bool failed = false;            // some rank's backward threw
  bool same_round = true;         // all ranks were in the same backward
  bool changed = false;           // static_graph: some rank used another set
  std::vector<uint8_t> expected;  // per parameter
  std::vector<uint32_t> buckets;  // per parameter: the number of its bucket
  SourceLocation where;
  std::string legend;  // which global ranks those of a subgroup are (RankNames::legend)
};

// The kinds of verdict on a failed backward, each in a file of its own under kinds/. `reports`: one
// per rank, in rank order.
Verdict rank_failed(std::span<const RankReport> reports);
Verdict backward_mismatch(std::span<const RankReport> reports);
// One for each parameter.
std::vector<Verdict> static_graph_changed(std::span<const RankReport> reports,
                                          std::span<const NamedParameter> parameters, SourceLocation where);
// One for each group of parameters that are missing on the same ranks for the same cause.
std::vector<Verdict> unused_parameters(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                                       const ErrorContext& context);
// What is printed of such a verdict: the cause first, then whom it concerns (`parameters`), then
// what to do.
std::string paragraph(const Verdict& verdict, const std::string& parameters);

ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             const ErrorContext& context);

}  // namespace brigade::dist
