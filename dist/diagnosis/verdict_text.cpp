#include <brigade/dist/diagnosis/verdict_text.h>

#include <brigade/dist/diagnosis/cause.h>
#include <brigade/dist/diagnosis/fields.h>

#include <algorithm>

namespace brigade::dist {

std::string encode(const std::vector<Verdict>& verdicts) {
  FieldWriter out;
  for (const Verdict& verdict : verdicts) {
    out << verdict.kind << verdict.message << static_cast<int64_t>(verdict.parameters.size());
    for (const ParameterVerdict& parameter : verdict.parameters)
      out << parameter.name << parameter.bytes << parameter.ready_ranks << parameter.missing_ranks;
    out << verdict.ranks << encode(verdict.cause) << verdict.advice << static_cast<int64_t>(verdict.severity)
        << static_cast<int64_t>(verdict.iteration);
  }
  return out.text();
}

std::vector<Verdict> decode_verdicts(const std::string& text) {
  std::vector<Verdict> verdicts;
  FieldReader in(text);
  while (!in.done()) {
    Verdict& verdict = verdicts.emplace_back();
    verdict.kind = in.next();
    verdict.message = in.next();
    for (int64_t count = in.number(); count > 0; --count) {
      ParameterVerdict& parameter = verdict.parameters.emplace_back();
      parameter.name = in.next();
      parameter.bytes = in.number();
      parameter.ready_ranks = in.numbers();
      parameter.missing_ranks = in.numbers();
    }
    verdict.ranks = in.numbers();
    verdict.cause = decode_cause(in.next());
    verdict.advice = in.next();
    verdict.severity = static_cast<Severity>(in.number());
    verdict.iteration = static_cast<uint64_t>(in.number());
  }
  return verdicts;
}

namespace {

void join(std::vector<int>& into, const std::vector<int>& ranks) {
  into.insert(into.end(), ranks.begin(), ranks.end());
  std::sort(into.begin(), into.end());
  into.erase(std::unique(into.begin(), into.end()), into.end());
}

}  // namespace

std::vector<Verdict> merge(std::span<const std::vector<Verdict>> by_rank) {
  std::vector<Verdict> merged;
  for (const std::vector<Verdict>& verdicts : by_rank) {
    for (const Verdict& verdict : verdicts) {
      const auto same = std::find_if(merged.begin(), merged.end(), [&](const Verdict& known) {
        return known.kind == verdict.kind && known.cause.same_as(verdict.cause) &&
               known.parameters.size() == verdict.parameters.size() &&
               std::equal(known.parameters.begin(), known.parameters.end(), verdict.parameters.begin(),
                          [](const auto& a, const auto& b) { return a.name == b.name; });
      });
      if (same == merged.end()) {
        merged.push_back(verdict);
        continue;
      }
      join(same->ranks, verdict.ranks);
      for (size_t i = 0; i < verdict.parameters.size(); ++i) {
        join(same->parameters[i].ready_ranks, verdict.parameters[i].ready_ranks);
        join(same->parameters[i].missing_ranks, verdict.parameters[i].missing_ranks);
      }
    }
  }
  return merged;
}

}  // namespace brigade::dist
