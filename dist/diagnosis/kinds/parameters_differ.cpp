// parameters_differ, gradients_differ, buffers_differ: the ranks do not hold the same values.
//
// Severity: error (buffers with `broadcast_buffers` off: warning)
// When: `verify_every`, `verify_consistency`
// Causes: `values_differ`
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

Verdict parameters_differ(const DifferentValues& found, SourceLocation where) {
  Verdict verdict;
  verdict.kind = found.what + "s_differ";
  verdict.ranks = outvoted(found.odd, found.odd.size() + found.others.size());
  verdict.cause.kind = CauseKind::ValuesDiffer;
  verdict.cause.place = where;
  verdict.cause.module = module_of(found.name);
  if (verdict.ranks.empty()) {
    std::vector<int> all = found.others;
    all.insert(all.end(), found.odd.begin(), found.odd.end());
    std::sort(all.begin(), all.end());
    verdict.parameters.push_back({found.name, found.bytes, {}, {}});
    verdict.cause.text = fmt::format("{} `{}` is not the same on {}", found.what, found.name, ranks_in_words(all));
  } else {
    verdict.parameters.push_back({found.name, found.bytes, found.others, found.odd});
    verdict.cause.text = fmt::format("{} `{}` is not the same on {} as on {}", found.what, found.name,
                                     ranks_in_words(found.odd), ranks_in_words(found.others));
  }
  if (!found.details.empty()) verdict.cause.text += "; " + found.details;
  verdict.message = verdict.cause.text;
  verdict.advice = found.what == "buffer"
                       ? "buffers follow each rank's own batches: use SyncBatchNorm or broadcast_buffers, and evaluate "
                         "or save after a broadcast (broadcast_coalesced, or from rank 0 only)"
                       : "find the first step after which it differs (verify_every=1); load the values of one rank on "
                         "all (broadcast_coalesced) before going on";
  return verdict;
}

}  // namespace brigade::dist
