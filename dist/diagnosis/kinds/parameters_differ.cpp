// parameters_differ, gradients_differ, buffers_differ: the ranks do not hold the same values.
//
// Severity: error (buffers with `broadcast_buffers` off: warning)
// When: `verify_every`, `verify_consistency`; `step()`, for buffers that forward updates
// Causes: `values_differ`
#include <brigade/dist/diagnosis/kinds.h>
#include <brigade/dist/errors/majority.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

Verdict parameters_differ(const DifferentValues& found, SourceLocation where) {
  Verdict verdict = new_verdict("", Severity::Error, CauseKind::ValuesDiffer, where);
  verdict.kind = found.what + "s_differ";
  verdict.what = fmt::format("{}{}s differ between the ranks", static_cast<char>(std::toupper(found.what[0])),
                             found.what.substr(1));
  verdict.ranks = outvoted(found.odd, found.odd.size() + found.others.size());
  verdict.cause.module = module_of(found.name);
  std::vector<int> all = found.others;
  all.insert(all.end(), found.odd.begin(), found.odd.end());
  std::sort(all.begin(), all.end());
  const bool is_blamed = !verdict.ranks.empty();
  verdict.parameters.push_back({found.name, found.bytes, is_blamed ? found.others : std::vector<int>{},
                                is_blamed ? found.odd : std::vector<int>{}});
  const bool is_buffer = found.what == "buffer";
  verdict.cause.text = found.details.empty() && is_buffer ? "each rank updates it by its own batches" : found.details;
  verdict.advice =
      is_buffer ? "use SyncBatchNorm or broadcast_buffers, or broadcast before you evaluate or save"
                : "find the first step after which it differs (verify_every = 1), or load one rank's values on all "
                  "(broadcast_coalesced)";
  set_message(verdict, fmt::format("{}: {} is not the same on {}{}, at {}", verdict.what, found.name,
                                   ranks_in_words(is_blamed ? found.odd : all),
                                   is_blamed ? " as on " + ranks_in_words(found.others) : "", to_string(where)));
  return verdict;
}

Verdict buffers_drift(std::span<const StepOnRank::Edit> updates, std::span<const GradientsApart> apart,
                      SourceLocation where) {
  Verdict verdict = new_verdict("buffers_differ", Severity::Warning, CauseKind::ValuesDiffer);
  verdict.cause.module = module_of(apart.front().parameter.name);
  for (const GradientsApart& each : apart) {
    verdict.parameters.push_back(about(each.parameter, {}, {}));
    const auto update = std::ranges::find(updates, each.parameter.name, &StepOnRank::Edit::parameter);
    verdict.cause.text += (verdict.cause.text.empty() ? "" : ", ") + update->in_words();
    if (verdict.cause.op.empty()) {
      verdict.cause.op = update->op;
      verdict.cause.place = update->where;
    }
  }
  verdict.cause.text += " wrote each rank's own values, and broadcast_buffers is off";
  verdict.advice = "all_reduce what they are computed from, or leave it if each rank's own is meant";
  set_message(verdict, fmt::format("Buffers differ between the ranks: {}, before the step at {}",
                                   names_in_words(verdict.parameters), to_string(where)));
  return verdict;
}

}  // namespace brigade::dist
