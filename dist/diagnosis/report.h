// From what each rank saw to the one error that all ranks raise.
#pragma once

#include <brigade/dist/diagnosis/cause.h>

#include <exception>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace brigade::dist {

struct NamedParameter;

// One rank's view of a failed backward.
struct RankReport {
  int rank = 0;
  uint64_t round = 0;                // its number of reduced backwards
  std::string backward;              // "file:line" of the call
  std::string failure;               // text of the exception that ended its backward, "" when it ran through
  std::vector<bool> ready;           // per parameter
  std::map<uint32_t, Cause> causes;  // of the parameters that were not
};

// As text, for the exchange.
std::string encode(const RankReport& report);
// Throws DistError for a text that encode() did not make.
RankReport decode_report(const std::string& text);

// `reports`: one per rank, in rank order. `failed`: some rank's backward threw. `same_round`: all ranks were in the
// same backward.
ReductionError compose_error(std::span<const RankReport> reports, std::span<const NamedParameter> parameters,
                             bool find_unused_parameters, bool failed, bool same_round, SourceLocation where);

}  // namespace brigade::dist
