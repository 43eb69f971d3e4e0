#include <brigade/dist/diagnosis/collective.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

void place_at(Cause& cause, const std::string& where) {
  const size_t colon = where.rfind(':');
  if (colon == std::string::npos) return;
  cause.file = where.substr(0, colon);
  cause.line = static_cast<uint32_t>(std::strtoul(where.c_str() + colon + 1, nullptr, 10));
}

bool is_step(const CollectiveInfo& info) { return info.description.starts_with("agreement on a step"); }
bool is_construction(const CollectiveInfo& info) {
  return info.description.starts_with("model check") || info.description.starts_with("parameters and buffers");
}
bool is_buffers(const CollectiveInfo& info) { return info.description.starts_with("buffers of"); }

// What usually lies behind two collectives that do not fit.
std::string likely_reason(const CollectiveInfo& a, const CollectiveInfo& b) {
  if (is_step(a) != is_step(b))
    return "one rank takes an optimizer step that the other skips: decide on every rank alike whether to skip a step";
  if (is_construction(a) && is_construction(b))
    return "the ranks wrap their modules in different orders: construct the wrappers in the same order on every rank";
  if (is_buffers(a) != is_buffers(b))
    return "one rank runs a forward in training mode that the other does not: evaluate under NoGradGuard and eval(), "
           "or "
           "through the module instead of the wrapper";
  if (a.description.starts_with("bucket") && b.description.starts_with("bucket"))
    return "the ranks run backward through different wrapped modules, or in another order";
  if (a.description.starts_with("bucket") || b.description.starts_with("bucket"))
    return "one rank is in a backward that the other does not run: give every rank the same number of batches, or use "
           "Join";
  if (a.count != b.count) return "the tensors have different sizes: collect the same values on every rank";
  if (a.dtype != b.dtype) return "the tensors have different dtypes: convert on every rank alike";
  return "call the same collectives in the same order on every rank";
}

}  // namespace

std::string in_words(const Whereabouts& place) {
  std::string text;
  if (place.last.sequence == 0) {
    text = fmt::format("rank {} has not called any collective", place.rank);
  } else {
    text = fmt::format("rank {} {} {}", place.rank, place.finished ? "was last in" : "is in", in_words(place.last));
  }
  if (!place.activity.empty()) text += fmt::format(", and for {:.1f} s in {}", place.activity_seconds, place.activity);
  if (place.silent_seconds > 2) text += fmt::format(", last heard of {:.1f} s ago", place.silent_seconds);
  return text;
}

Verdict mismatch_verdict(std::span<const CollectiveInfo> by_rank, const RankNames& names) {
  Verdict verdict;
  verdict.kind = "collective_mismatch";
  verdict.cause.kind = CauseKind::CollectiveDiffers;
  // The usual one is what most ranks are in; on a tie, what rank 0 is in.
  size_t usual = 0;
  const auto count = [&](size_t i) {
    return std::count_if(by_rank.begin(), by_rank.end(), [&](const auto& each) { return each.matches(by_rank[i]); });
  };
  for (size_t i = 1; i < by_rank.size(); ++i) {
    if (count(i) > count(usual)) usual = i;
  }
  size_t odd = usual;
  for (size_t i = 0; i < by_rank.size(); ++i) {
    if (by_rank[i].matches(by_rank[usual])) continue;
    if (odd == usual) odd = i;
    verdict.ranks.push_back(names(static_cast<int>(i)));
  }
  place_at(verdict.cause, by_rank[odd].where);
  verdict.cause.op = by_rank[odd].kind;
  verdict.iteration = by_rank[odd].iteration;
  const size_t first = std::min(usual, odd);
  const size_t second = std::max(usual, odd);
  verdict.cause.text = fmt::format("ranks met in different collectives: rank {} is in {}, rank {} is in {}",
                                   names(static_cast<int>(first)), in_words(by_rank[first]),
                                   names(static_cast<int>(second)), in_words(by_rank[second]));
  verdict.advice = likely_reason(by_rank[usual], by_rank[odd]);
  verdict.message = verdict.cause.text + ". Nothing was exchanged. Likely: " + verdict.advice;
  return verdict;
}

Verdict timeout_verdict(const CollectiveInfo& waiting, std::span<const Whereabouts> missing) {
  Verdict verdict;
  verdict.kind = "collective_timeout";
  verdict.cause.kind = CauseKind::RankBehind;
  verdict.cause.op = waiting.kind;
  verdict.iteration = waiting.iteration;
  std::string places;
  for (const Whereabouts& place : missing) {
    verdict.ranks.push_back(place.rank);
    places += (places.empty() ? "" : "; ") + in_words(place);
  }
  if (!missing.empty()) {
    const Whereabouts& first = missing.front();
    const size_t at = first.activity.rfind(" at ");
    place_at(verdict.cause, at != std::string::npos ? first.activity.substr(at + 4) : first.last.where);
  }
  verdict.cause.text =
      fmt::format("{} did not come to {}{}{}", missing.empty() ? std::string("a rank") : ranks_in_words(verdict.ranks),
                  in_words(waiting), places.empty() ? "" : ": ", places);
  verdict.advice =
      "look at what the named rank does there: a loop that ended early, a branch, a slow batch. A longer time-out "
      "helps a "
      "rank that is only slow; Join serves ranks with fewer batches";
  verdict.message = verdict.cause.text;
  return verdict;
}

Verdict lost_verdict(const CollectiveInfo& waiting, const Whereabouts& lost, const std::string& how,
                     bool by_exception) {
  Verdict verdict;
  verdict.kind = "rank_lost";
  verdict.cause.kind = by_exception ? CauseKind::Exception : CauseKind::RankGone;
  verdict.cause.op = waiting.kind;
  verdict.iteration = waiting.iteration;
  verdict.ranks = {lost.rank};
  place_at(verdict.cause, lost.last.where);
  verdict.cause.text = fmt::format("rank {} {}; {}", lost.rank, how, in_words(lost));
  verdict.advice = by_exception ? "repair the error on the rank that is named; the other ranks only report it"
                   : how.starts_with("died")
                       ? "see its own output and exit status (brigade run prints them): a signal, a crash, no memory"
                       : "it left its loop before the others: give every rank the same number of batches, or use Join";
  verdict.message = fmt::format("{}; waited for in {}", verdict.cause.text, in_words(waiting));
  return verdict;
}

}  // namespace brigade::dist
