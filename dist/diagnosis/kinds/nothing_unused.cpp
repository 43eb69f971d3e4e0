// nothing_unused: find_unused_parameters is on, and every parameter was used in every backward so
// far.
#include <brigade/dist/diagnosis/kinds.h>

#include <fmt/format.h>

namespace brigade::dist {

Verdict nothing_unused(int64_t flag_bytes, size_t buckets, const Moment& moment) {
  Verdict verdict = verdict_at(moment, "nothing_unused", Severity::Note, CauseKind::Wasteful);
  verdict.ranks = moment.every_rank();
  verdict.cause.text = fmt::format(
      "find_unused_parameters is on, and every parameter was used in the first {} backwards. It costs no collective "
      "and no walk here: {} of flags in {} buckets, which strict mode sends as well",
      moment.iteration, bytes_in_words(flag_bytes), buckets);
  verdict.message = verdict.cause.text;
  verdict.advice = "leave it out to be told when a parameter is forgotten";
  return verdict;
}

}  // namespace brigade::dist
