// collective_mismatch: the ranks met in different collectives.
//
// Severity: error
// When: in a collective
// Causes: `collective_differs`
#include <brigade/dist/diagnosis/collective.h>
#include <brigade/dist/diagnosis/majority.h>

#include <fmt/format.h>

#include <algorithm>

namespace brigade::dist {

namespace {

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
           "or through the module instead of the wrapper";
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

Verdict collective_mismatch(std::span<const CollectiveInfo> by_rank, const RankNames& names) {
  Verdict verdict;
  verdict.kind = "collective_mismatch";
  verdict.cause.kind = CauseKind::CollectiveDiffers;
  const auto match = [](const CollectiveInfo& a, const CollectiveInfo& b) { return a.matches(b); };
  const size_t usual = usual_rank(by_rank, match);
  const std::vector<int> odd_ones = odd_ranks(by_rank, match);
  for (const int rank : odd_ones)
    verdict.ranks.push_back(names(rank));
  const size_t odd = odd_ones.empty() ? usual : static_cast<size_t>(odd_ones.front());
  verdict.cause.place = by_rank[odd].where;
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

}  // namespace brigade::dist
